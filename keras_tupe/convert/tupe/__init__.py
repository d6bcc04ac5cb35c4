"""The checkpoints of TUPE's authors."""
