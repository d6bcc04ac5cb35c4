"""Every position method in every format: `python -m benchmarks.formats`."""
