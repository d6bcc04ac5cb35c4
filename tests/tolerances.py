"""How near float64 results come on each backend."""

import keras


def in_float64(tolerance):
    """Returns `tolerance` on TensorFlow, and float32's elsewhere.

    Keras computes layer normalizations, sines and tanh of float64 tensors in float32 on JAX.
    """
    return tolerance if keras.backend.backend() == "tensorflow" else 2e-5
