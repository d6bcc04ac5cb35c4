"""The promises of a positional method, and an oracle of a whole encoder in NumPy."""
