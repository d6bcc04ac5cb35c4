"""Values of a tensor, where there are some."""

import keras
from keras import ops


def concrete(tensor):
    """Returns the values of a tensor as an array, or `None` while a graph is being traced."""
    if keras.backend.backend() == "tensorflow" and not hasattr(tensor, "__array__"):
        return None
    try:
        return ops.convert_to_numpy(tensor)
    except (TypeError, NotImplementedError):  # what JAX and TensorFlow raise for a traced tensor
        return None
