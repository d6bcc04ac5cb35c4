"""The registry of positional methods: one file in this folder is one method.

For whoever adds a method, or asks what one does. `METHODS` maps the names of the files to their
records, `get` looks a name up, `load_file` adds a method from a file outside the package, and
`source_of` tells the content of such a file. All that the file of a method needs is here: the
record `PositionMethod` with `Dims` and `DeadWeight`, what makes its layers (`attention`,
`combined_bias`) or all of it (`additive_method`, `attention_method`, `distance_method`), fills its
fields, reads and checks its options (`check`), and pieces of equations in NumPy (`oracle`).

A folder in this folder is not a method.
"""

from keras_tupe import check
from keras_tupe._registry import Registry
from keras_tupe.positions import oracle
from keras_tupe.positions._makers import additive_method, attention_method, distance_method
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
    "additive_method",
    "always",
    "attention",
    "attention_method",
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

REGISTRY = Registry(__name__, __path__, PositionMethod, "position method", "position", "position")
# The records of all positional methods, by name; `load_file` adds more.
METHODS = REGISTRY.records
# From a name to its record; the error of an unknown name suggests the nearest.
get = REGISTRY.get
# From the path of a Python file, or of a preset that carries one, to the name of its record, which
# is then in `METHODS`. A preset never runs the file that it carries by itself.
load_file = REGISTRY.load_file
# From a name to the bytes of the file that was loaded; `None` for those of the package.
source_of = REGISTRY.source_of
