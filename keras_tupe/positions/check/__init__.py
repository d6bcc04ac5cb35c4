"""Checks of options and arguments with one wording, for the files of methods.

Each raises a `ValueError` that names the argument, says what it must be and what was received.

- `integer(name, value, low=1, high=None, even=False)`: an integer of a range;
- `number(name, value, above=None, at_least=None, at_most=None)`: a finite number within limits;
- `choice(name, value, choices)`: one of some values;
- `boolean(name, value)`: `True` or `False`.

Example:
    >>> integer("rank", 0)
    Traceback (most recent call last):
    ...
    ValueError: `rank` must be a positive integer. Received: rank=0
"""

from keras_tupe.layers._checks import boolean, choice, integer, number

__all__ = ["boolean", "choice", "integer", "number"]
