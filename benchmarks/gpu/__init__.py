"""Train steps on an accelerator, through JAX: `python -m benchmarks.gpu`."""
