"""Tokens per second of text generation: `python -m benchmarks.generation`."""
