"""One attention layer of every method, short to long: `python -m benchmarks.attention`."""
