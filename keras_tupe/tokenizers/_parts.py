"""Texts cut between characters that normalisation cannot merge."""

import re
import unicodedata

ERRORS = "surrogateescape"  # each byte that is no UTF-8 counts as a character

_STARTER, _JOINER, _IGNORABLE = "SJI"
_PART = re.compile("[SJI](?:I*J+)*")
_MARKS = {"Mn", "Mc", "Me"}
_JOINING_LETTERS = (  # they may merge with the letter before, although they are no marks
    (0x1160, 0x11FF),  # vowels and final consonants of Hangul
    (0x3131, 0x318E),  # the same, in their compatibility forms
    (0xFF9E, 0xFFDC),  # halfwidth voicing marks and Hangul
)


class _Kinds(dict):
    """The kind of each code point, found when it is first asked for."""

    def __missing__(self, code):
        category = unicodedata.category(chr(code))
        is_joining_letter = any(first <= code <= last for first, last in _JOINING_LETTERS)
        kind = _STARTER
        if category in _MARKS or is_joining_letter:
            kind = _JOINER
        elif category == "Cf":
            kind = _IGNORABLE
        self[code] = kind
        return kind


_KINDS = _Kinds()


def parts(text):
    """Cuts a text into characters, each with the marks that follow it.

    Args:
        text: bytes.

    Returns:
        List of bytes; joined they are `text`.
    """
    characters = text.decode("utf-8", ERRORS)
    found = _PART.finditer(characters.translate(_KINDS))
    return [characters[slice(*match.span())].encode("utf-8", ERRORS) for match in found]


def words(text):
    """Cuts a text, bytes, into words and single ASCII spaces; joined they are `text`."""
    return re.findall(rb"[^\t-\r ]+|[\t-\r ]", text)


def for_each_part(function, cuts):
    """Calls a function once on all different parts, and hands the results out.

    Args:
        function: list of bytes -> list of results.
        cuts: list of lists of parts.

    Returns:
        List of lists: the result of each part.
    """
    unique = sorted({part for cut in cuts for part in cut})
    results = dict(zip(unique, function(unique), strict=True))
    return [[results[part] for part in cut] for cut in cuts]
