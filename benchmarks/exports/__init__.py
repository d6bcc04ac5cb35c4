"""Inference of exported encoders: `python -m benchmarks.exports`."""
