"""GLUE: papers' protocols, rows, runs over learning rates and seeds, tables."""
