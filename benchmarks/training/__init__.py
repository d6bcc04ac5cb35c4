"""Train steps beside those of other libraries: `python -m benchmarks.training`."""
