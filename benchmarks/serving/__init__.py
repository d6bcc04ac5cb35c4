"""Exported models behind a server: `python -m benchmarks.serving`."""
