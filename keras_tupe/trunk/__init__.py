"""The trunk of encoders and decoders, and what goes through it: `models` has what is public."""
