"""Checks of sizes, lengths and values, each where it is known."""

import keras
from keras import ops

from keras_tupe.check import integer, is_integer, is_number

__all__ = ["check_positive_integers", "checked_length", "concrete", "is_integer", "is_number"]


def check_positive_integers(**values):
    """Raises `ValueError` for the first value that is not a positive integer."""
    for name, value in values.items():
        integer(name, value)


def checked_length(hidden_states, max_sequence_length, owner):
    """Returns the length, an integer or a scalar tensor; one known to exceed the table raises."""
    length = hidden_states.shape[1]
    if None not in (length, max_sequence_length) and length > max_sequence_length:
        raise ValueError(
            f"`{owner}` has position embeddings for at most max_sequence_length="
            f"{max_sequence_length} tokens. Truncate the input or build the model with a larger "
            f"`max_sequence_length`. Received: sequence length={length}"
        )
    return ops.shape(hidden_states)[1]


def concrete(tensor):
    """Returns the values of a tensor as an array, or `None` while a graph is being traced."""
    if keras.backend.backend() == "tensorflow" and not hasattr(tensor, "__array__"):
        return None
    try:
        return ops.convert_to_numpy(tensor)
    except (TypeError, NotImplementedError):  # what JAX and TensorFlow raise for a traced tensor
        return None
