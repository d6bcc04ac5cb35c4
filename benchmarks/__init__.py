"""Side-by-side timings, run as `python -m benchmarks.NAME`."""
