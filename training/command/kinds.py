"""Kinds of values that a setting may have, read from a command line or from a TOML file."""

import dataclasses
import difflib
import glob
import os

_PHRASES = {
    bool: "true or false",
    int: "an integer",
    float: "a number",
    str: "a text",
    tuple: "a list of texts",
}
NONE = "none"  # how a number that may be missing is taken back where a file gives one


@dataclasses.dataclass(frozen=True)
class Kind:
    """What a setting may be.

    Attributes:
        type: `bool`, `int`, `float`, `str` or `tuple` (of texts).
        optional: whether it is a number that may be `None`, written as the text "none".
    """

    type: type
    optional: bool = False

    def __str__(self):
        return _PHRASES[self.type] + (f", or {NONE}" if self.optional else "")

    def from_text(self, text):
        """Returns the value of a word of the command line.

        Raises:
            ValueError: if it is not of this kind.
        """
        if self.optional and text == NONE:
            return None
        return self.type(text)

    def from_toml(self, value):
        """Returns the value of a TOML entry; integers are numbers, nothing else is converted.

        Raises:
            ValueError: if it is not of this kind.
        """
        if self.optional and value == NONE:
            return None
        allowed = {float: (int, float), tuple: list}.get(self.type, self.type)
        if not isinstance(value, allowed) or (isinstance(value, bool) and self.type is not bool):
            raise ValueError(f"not {self}")
        if self.type is tuple and not all(isinstance(item, str) for item in value):
            raise ValueError(f"not {self}")
        try:
            return self.type(value)
        except OverflowError:  # an integer beyond all floats
            raise ValueError(f"not {self}") from None


def kind_of(field):
    """Returns the `Kind` of a dataclass field: of its default, or of its annotation if `None`."""
    if field.default is None:
        found = next(kind for kind in (int, float, str) if kind.__name__ in str(field.type))
    else:
        found = type(field.default)
    return Kind(found, optional=found in (int, float) and "None" in str(field.type))


def nearest(name, known):
    """Returns which of the known names is the most like `name`."""
    return difflib.get_close_matches(str(name), list(known), n=1, cutoff=0)[0]


def values_of(words):
    """Returns the values of a list that is written by spaces, by commas, or both; a tuple.

    A comma inside of brackets or double quotes is a part of its value, and so are all commas of a
    word that is a path, or a pattern of paths, of something that is there.

    Args:
        words: list of strings, as a shell cuts them.

    Example:
        >>> values_of(["absolute,tupe_r", "t5", 'mine:sizes=[2,3]:name="a,b",rope'])
        ('absolute', 'tupe_r', 't5', 'mine:sizes=[2,3]:name="a,b"', 'rope')
    """
    found = []
    for word in words:
        found += [word] if "," not in word or _is_path(word) else _cut(word)
    return tuple(found)


def _is_path(word):
    file = word.split(":")[0]  # that of a method has options behind it
    return os.path.exists(file) or (glob.has_magic(word) and bool(glob.glob(word, recursive=True)))


def _cut(word):
    """Returns the parts of a word between the commas that are not inside of a value."""
    parts, depth, quoted = [""], 0, False
    for letter in word:
        quoted ^= letter == '"'
        depth += (letter in "[{(") - (letter in "]})") if not quoted else 0
        if letter == "," and not quoted and depth <= 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part for part in parts if part] or [word]
