"""Rows per second from prepared files to batches: `python -m benchmarks.data`."""
