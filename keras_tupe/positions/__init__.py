"""The registry of positional methods: one file in this folder is one method.

For whoever adds a method, or asks what one does. `METHODS` maps the names of the files to their
records. `get` looks a name up, `load_file` adds a method from a file outside the package. All that
the file of a method needs is here:

- `PositionMethod`, the record that it fills, with `Dims` and `DeadWeight`;
- `attention`, `plain_attention`, `combined_bias` and `distance_method`, which make its layers;
- `is_untied`, `is_released` and `boolean`, which read its options, and `EITHER_CLS`;
- `KEY_BIAS`, `THETA_ROW`, `additive_dead_weights`, `always` and `memory_unless_untied`, which fill
  fields of the record;
- `SYMBOLS` and `OPTION_MEANINGS`, which say what need not be explained in a record;
- `oracle`, pieces of equations in NumPy.

A folder in this folder is no method.
"""

import sys

from keras_tupe._keywords import refuse_unknown_keywords
from keras_tupe._registry import Registry, records_in
from keras_tupe.positions import check, oracle
from keras_tupe.positions._distance_table import distance_method
from keras_tupe.positions._method import PositionMethod
from keras_tupe.positions._parts import (
    EITHER_CLS,
    KEY_BIAS,
    THETA_ROW,
    DeadWeight,
    Dims,
    additive_dead_weights,
    always,
    attention,
    boolean,
    combined_bias,
    is_released,
    is_untied,
    memory_unless_untied,
    plain_attention,
)
from keras_tupe.positions._words import OPTION_MEANINGS, SYMBOLS

__all__ = [
    "EITHER_CLS",
    "KEY_BIAS",
    "METHODS",
    "OPTION_MEANINGS",
    "SYMBOLS",
    "THETA_ROW",
    "DeadWeight",
    "Dims",
    "PositionMethod",
    "additive_dead_weights",
    "always",
    "attention",
    "boolean",
    "check",
    "combined_bias",
    "distance_method",
    "get",
    "is_released",
    "is_untied",
    "load_file",
    "memory_unless_untied",
    "oracle",
    "plain_attention",
    "source_of",
]

# The records of all positional methods, by name; `load_file` adds more.
METHODS = records_in(__name__, __path__, "METHOD")

for _name in METHODS:
    refuse_unknown_keywords(vars(sys.modules[f"{__name__}.{_name}"]))
refuse_unknown_keywords(globals())

REGISTRY = Registry(
    METHODS,
    PositionMethod,
    noun="position method",
    argument="position",
    constant="METHOD",
    loader=f"{__name__}.load_file",
    carried_as="position_file.json",
    option="--position-file",
)


def get(name):
    """Returns the record of a positional method.

    Args:
        name: name of a file in `keras_tupe/positions`, or of a file loaded with `load_file`.

    Returns:
        A `PositionMethod`.

    Raises:
        ValueError: if there is no such method; the nearest name is suggested.

    Example:
        >>> get("tupe_r").source
        'Ke et al. 2021, eq. 11 (TUPE-R)'
    """
    return REGISTRY.get(name)


def load_file(path):
    """Adds the positional method of a Python file to `METHODS`, under the file's name.

    The file defines `METHOD`, a `PositionMethod`. A saved model records the name only: load
    the file again before the model. A preset also carries the file, and never runs it by itself.

    Args:
        path: path of a `.py` file, whose name without the suffix becomes the method's name; or the
            folder of a preset that carries such a file.

    Returns:
        The name of the method.

    Raises:
        ValueError: if the file is missing or no Python file, its name is taken or not an
            identifier, it defines no `PositionMethod` called `METHOD`, or it lies in a preset and
            was changed since that was saved. Errors raised by the file itself are passed on, named.
    """
    return REGISTRY.load_file(path)


def source_of(name):
    """Returns the content of the file that a method was loaded from.

    Args:
        name: name of a method.

    Returns:
        Bytes; `None` for a method of the package.

    Example:
        >>> source_of("tupe_r") is None
        True
    """
    return REGISTRY.source_of(name)
