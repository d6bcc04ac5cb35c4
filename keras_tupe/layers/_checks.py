"""Checks of constructor arguments, with one wording."""

import numbers


def is_integer(value):
    """Returns whether `value` is an integer (NumPy's count, booleans do not)."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def check_positive_integers(**values):
    """Raises `ValueError` for the first value that is not a positive integer."""
    for name, value in values.items():
        if not is_integer(value) or value < 1:
            raise ValueError(f"`{name}` must be a positive integer. Received: {name}={value!r}")
