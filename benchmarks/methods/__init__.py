"""Time and memory of every position method beside `absolute`: `python -m benchmarks.methods`."""
