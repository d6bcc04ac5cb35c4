"""Checks of arguments, lengths and values, each where it is known, with one wording."""

import math
import numbers

import keras
import numpy as np
from keras import ops


def is_integer(value):
    """Returns whether `value` is an integer (NumPy's count, booleans do not)."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def is_number(value):
    """Returns whether `value` is a finite number, and no boolean."""
    is_real = isinstance(value, (int, float, np.floating)) and not isinstance(value, bool)
    return is_real and math.isfinite(value)


def check_positive_integers(**values):
    """Raises `ValueError` for the first value that is not a positive integer."""
    for name, value in values.items():
        if not is_integer(value) or value < 1:
            raise ValueError(f"`{name}` must be a positive integer. Received: {name}={value!r}")


def check_heads(heads, num_heads):
    """Raises `ValueError` if these are not numbers of heads, from 0 on.

    Args:
        heads: list of integers, or `None`.
        num_heads: heads that there are.
    """
    known = range(num_heads)
    if heads is not None and not all(is_integer(head) and head in known for head in heads):
        raise ValueError(
            f"`heads` must be numbers of heads, from 0 to {num_heads - 1}. "
            f"Received: heads={heads!r}"
        )


def checked_length(hidden_states, max_sequence_length, owner):
    """Returns the length of `hidden_states`, after comparing it with the position table.

    Args:
        hidden_states: tensor `(batch, length, hidden_dim)`.
        max_sequence_length: rows of the position table.
        owner: name of the layer, for the message.

    Returns:
        The length, as an integer where it is known and a scalar tensor otherwise.

    Raises:
        ValueError: if the length is known and exceeds the table.
    """
    static = hidden_states.shape[1]
    if static is not None and static > max_sequence_length:
        raise ValueError(
            f"`{owner}` has position embeddings for at most max_sequence_length="
            f"{max_sequence_length} tokens. Truncate the input or build the model with a larger "
            f"`max_sequence_length`. Received: sequence length={static}"
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
