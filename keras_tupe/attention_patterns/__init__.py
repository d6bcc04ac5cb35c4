"""The registry of attention patterns: who may attend to whom. One file in this folder is one.

`PATTERNS` maps the names of the files to their records, `get` looks a name up, `load_file` adds a
pattern from a file outside the package, and `source_of` tells the content of such a file. A file
fills the record `AttentionPattern`, and says by `Visible` to the attention core who sees whom.
"""

from keras_tupe._registry import Registry
from keras_tupe.attention_patterns._pattern import AttentionPattern
from keras_tupe.attention_patterns._visible import Visible

__all__ = ["PATTERNS", "AttentionPattern", "Visible", "get", "load_file", "source_of"]

REGISTRY = Registry(
    __name__, __path__, AttentionPattern, "attention pattern", "attention_pattern", "pattern"
)
# The records of all attention patterns, by name; `load_file` adds more.
PATTERNS = REGISTRY.records
# From a name to its record; the error of an unknown name suggests the nearest.
get = REGISTRY.get
# From the path of a Python file, or of a preset that carries one, to the name of its record, which
# is then in `PATTERNS`. A preset never runs the file that it carries by itself.
load_file = REGISTRY.load_file
# From a name to the bytes of the file that was loaded; `None` for those of the package.
source_of = REGISTRY.source_of
