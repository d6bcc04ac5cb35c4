"""Train steps on an accelerator, on JAX, TensorFlow and torch: `python -m benchmarks.gpu`."""
