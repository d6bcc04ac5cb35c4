"""The registry of attention patterns: who may attend to whom. One file in this folder is one.

For whoever adds a pattern, or asks what one does. `PATTERNS` maps the names of the files to their
records. `get` looks a name up, `load_file` adds a pattern from a file outside the package,
`source_of` tells the content of such a file. All that the file of a pattern needs is here:
`AttentionPattern`, the record that it fills, and `Visible`, which says it to the attention core.
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
get, load_file, source_of = REGISTRY.get, REGISTRY.load_file, REGISTRY.source_of
