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


def integer(name, value, low=1, high=None, even=False):
    """Raises `ValueError` if an argument is not an integer of a range, which may be `even`."""
    limits = f" >= {low}" if high is None else f" from {low} to {high}"
    wanted = f"an {'even ' if even else ''}integer{limits}"
    wanted = "a positive integer" if (low, high, even) == (1, None, False) else wanted
    is_in = is_integer(value) and low <= value and (high is None or value <= high)
    _require(is_in and not (even and value % 2), name, value, wanted)


def number(name, value, above=None, at_least=None, at_most=None):
    """Raises `ValueError` if an argument is not a finite number within limits."""
    limits = {"above": above, "at least": at_least, "at most": at_most}
    words = " and ".join(f"{word} {x}" for word, x in limits.items() if x is not None)
    fits = is_number(value) and (
        (above is None or value > above)
        and (at_least is None or value >= at_least)
        and (at_most is None or value <= at_most)
    )
    _require(fits, name, value, f"a number {words}".rstrip())


def choice(name, value, choices):
    """Raises `ValueError` if an argument is not one of some values."""
    _require(any(value is x or value == x for x in choices), name, value, f"one of {list(choices)}")


def boolean(name, value):
    """Raises `ValueError` if an argument is neither `True` nor `False`."""
    _require(isinstance(value, bool), name, value, "True or False")


def _require(fits, name, value, wanted):
    if not fits:
        raise ValueError(f"`{name}` must be {wanted}. Received: {name}={value!r}")


def check_positive_integers(**values):
    """Raises `ValueError` for the first value that is not a positive integer."""
    for name, value in values.items():
        integer(name, value)


def checked_length(hidden_states, max_sequence_length, owner):
    """Returns the length of `hidden_states`, an integer where it is known, else a scalar tensor.

    Args:
        hidden_states: tensor `(batch, length, hidden_dim)`.
        max_sequence_length: rows of the position table; `None` if there is none.
        owner: name of the layer, for the message.

    Raises:
        ValueError: if the length is known and exceeds the table.
    """
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
