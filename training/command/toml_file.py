"""TOML that anybody may have written: read as a dictionary, or refused with a reason."""

import math
import pathlib
import tomllib

_MAX_INTEGER = 2**63  # of TOML; Python's parser has no limit


def read_toml(path):
    """Returns the dictionary in a TOML file.

    Args:
        path: the file.

    Raises:
        OSError: if it cannot be read.
        ValueError: if it is not TOML in UTF-8, is nested too deeply, or has a number that is
            infinite, not a number, or an integer beyond 64 bits.
    """
    try:
        entries = tomllib.loads(pathlib.Path(path).read_text(encoding="utf-8"))
        _check_numbers(entries)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return entries


def _check_numbers(value):
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            _check_numbers(item)
    elif isinstance(value, int) and not -_MAX_INTEGER <= value < _MAX_INTEGER:
        raise ValueError("it has an integer beyond 64 bits")
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"it has a number that is not finite, {value}")
