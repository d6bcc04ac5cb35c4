"""The registry of attention patterns: who may attend to whom. One file in this folder is one.

For whoever adds a pattern, or asks what one does. `PATTERNS` maps the names of the files to their
records. `get` looks a name up, `load_file` adds a pattern from a file outside the package. All that
the file of a pattern needs is here: `AttentionPattern`, the record that it fills, and `Visible`,
which says it to the attention core.
"""

from keras_tupe._keywords import refuse_unknown_keywords
from keras_tupe._registry import Registry, records_in
from keras_tupe.attention_patterns._pattern import AttentionPattern
from keras_tupe.attention_patterns._visible import Visible

__all__ = ["PATTERNS", "AttentionPattern", "Visible", "get", "load_file", "source_of"]

# The records of all attention patterns, by name; `load_file` adds more.
PATTERNS = records_in(__name__, __path__, "PATTERN")

refuse_unknown_keywords(globals())

REGISTRY = Registry(
    PATTERNS,
    AttentionPattern,
    noun="attention pattern",
    argument="attention_pattern",
    constant="PATTERN",
    loader=f"{__name__}.load_file",
    carried_as="pattern_file.json",
    option="--pattern-file",
)


def get(name):
    """Returns the record of an attention pattern.

    Args:
        name: name of a file in `keras_tupe/attention_patterns`, or of one loaded with `load_file`.

    Returns:
        An `AttentionPattern`.

    Raises:
        ValueError: if there is no such pattern; the nearest name is suggested.

    Example:
        >>> get("causal").visible(0, {})
        Visible(left=None, right=0, num_global=0, separate_global=False, also=None)
    """
    return REGISTRY.get(name)


def load_file(path):
    """Adds the attention pattern of a Python file to `PATTERNS`, under the file's name.

    The file defines `PATTERN`, an `AttentionPattern`. A saved model records the name only: load
    the file again before the model. A preset also carries the file, and never runs it by itself.

    Args:
        path: path of a `.py` file, whose name without the suffix becomes the pattern's name; or the
            folder of a preset that carries such a file.

    Returns:
        The name of the pattern.

    Raises:
        ValueError: if the file is missing or no Python file, its name is taken or not an
            identifier, it defines no `AttentionPattern` called `PATTERN`, or it lies in a preset
            and was changed since that was saved. Errors raised by the file are passed on, named.
    """
    return REGISTRY.load_file(path)


def source_of(name):
    """Returns the content of the file that a pattern was loaded from.

    Args:
        name: name of a pattern.

    Returns:
        Bytes; `None` for a pattern of the package.

    Example:
        >>> source_of("causal") is None
        True
    """
    return REGISTRY.source_of(name)
