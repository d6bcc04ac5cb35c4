"""Where in the original text a piece comes from, when normalisation changes lengths.

All offsets count bytes of UTF-8, and the spans of a text are two arrays, starts and ends of its
pieces. Texts are cut into parts that normalisation cannot merge, and each part is normalised alone.
"""

import itertools
import re
import unicodedata

import numpy as np

_ERRORS = "surrogateescape"  # each byte that is no UTF-8 counts as a character
_STARTER, _JOINER, _IGNORABLE = "SJI"
_PART = re.compile("[SJI](?:I*J+)*")
_JOINING_LETTERS = (  # they may merge with the letter before, although they are no marks
    (0x1160, 0x11FF),  # vowels and final consonants of Hangul
    (0x3131, 0x318E),  # the same, in their compatibility forms
    (0xFF9E, 0xFFDC),  # halfwidth voicing marks and Hangul
)


class _Kinds(dict):
    """The kind of each code point, found when it is first asked for."""

    def __missing__(self, code):
        category = unicodedata.category(chr(code))
        kind = _IGNORABLE if category == "Cf" else _STARTER
        if category[0] == "M" or any(first <= code <= last for first, last in _JOINING_LETTERS):
            kind = _JOINER
        self[code] = kind
        return kind


_KINDS = _Kinds()


def numpy_rows(ragged):
    """Returns the rows of a ragged tensor as a list of arrays."""
    values, bounds = ragged.flat_values.numpy(), ragged.row_splits.numpy()
    return [values[start:end] for start, end in itertools.pairwise(bounds)]


def whole_characters(text, starts, ends):
    """Widens spans in a text to whole characters, each with the marks that follow it."""
    if text.isascii():
        return starts, ends
    bounds = np.cumsum([0, *map(len, _parts(text))])
    starts = bounds[np.searchsorted(bounds, starts, "right") - 1]
    return starts, bounds[np.searchsorted(bounds, ends)]


def cover_split_characters(texts, spans, piece_sizes, normalized_sizes):
    """Gives pieces that hold a part of one character the whole of it.

    The SentencePiece op counts such a character to the last of these pieces alone. `piece_sizes`
    are bytes of the pieces of each text, spaces apart; -1 for bytes and unknown pieces, to whose
    ends the op's offsets are right unless they are empty. `normalized_sizes` is a function of a
    list of parts: how many bytes, spaces apart, the model makes of each. No end becomes smaller.
    """
    spans = list(spans)
    rows = [row for row, text in enumerate(texts) if not text.isascii()]  # ASCII is never split
    cuts = [_parts(texts[row]) for row in rows]
    for row, cut, sizes in zip(rows, cuts, _for_each_part(normalized_sizes, cuts), strict=True):
        spans[row] = _covered(cut, sizes, *spans[row], piece_sizes[row])
    return spans


def through_normalisation(sources, targets, spans, normalize):
    """Takes spans in normalised texts, the targets, back to the original ones.

    What `normalize`, a function of a list of parts, changes is taken as a whole: a piece that holds
    a byte of its result comes from all of it.
    """
    spans = list(spans)
    pairs = enumerate(zip(sources, targets, strict=True))
    rows = [n for n, (a, b) in pairs if not a.isascii() or len(a) != len(b)]  # others keep places
    cuts = [_parts(sources[row]) for row in rows]
    for row, cut, results in zip(rows, cuts, _for_each_part(normalize, cuts), strict=True):
        if b"".join(results) != targets[row]:
            # parts that merge after all, in scripts newer than this Python: words, and spaces
            cut = re.findall(rb"[^\t-\r ]+|[\t-\r ]", sources[row])
            (results,) = _for_each_part(normalize, [cut])
        spans[row] = _unfolded(cut, results, *spans[row])
    return spans


def _parts(text):
    """Cuts a text, bytes, into characters, each with the marks that follow it."""
    characters = text.decode("utf-8", _ERRORS)
    found = _PART.finditer(characters.translate(_KINDS))
    return [characters[slice(*match.span())].encode("utf-8", _ERRORS) for match in found]


def _for_each_part(function, cuts):
    """Calls a function once on all different parts, and returns the result of each, by text."""
    unique = sorted({part for cut in cuts for part in cut})
    results = dict(zip(unique, function(unique), strict=True))
    return [[results[part] for part in cut] for cut in cuts]


def _covered(cut, sizes, starts, ends, piece_sizes):
    bounds, normalized_bounds = np.cumsum([0, *map(len, cut)]), np.cumsum([0, *sizes])
    behind = np.searchsorted(bounds, ends, "right")  # the end of the part that goes on there
    covered, done = ends.copy(), 0
    for index, (bound, size) in enumerate(zip(behind, piece_sizes, strict=True)):
        expected = normalized_bounds[bound - 1]  # bytes of all that ends here or before
        done = done + size if size >= 0 else max(done, expected)
        is_split = bounds[bound - 1] == ends[index] and done > expected
        if is_split or (size and starts[index] == ends[index]):
            covered[index] = bounds[min(bound, len(cut))]
    return starts, np.maximum.accumulate(covered)


def _unfolded(cut, results, starts, ends):
    # one more part, of no bytes, behind the last: for offsets at the end of the text
    sizes, new_sizes = ([*map(len, row), 0] for row in (cut, results))
    source_ends, target_ends = np.cumsum(sizes), np.cumsum(new_sizes)
    shifts = source_ends - sizes - target_ends + new_sizes
    is_same = np.array([*map(bytes.__eq__, cut, results), True])

    def moved(offsets, index, edges):
        return np.where(is_same[index], offsets + shifts[index], edges[index])

    first = moved(starts, np.searchsorted(target_ends[:-1], starts, "right"), source_ends - sizes)
    last = moved(ends, np.searchsorted(target_ends[:-1], ends - 1, "right"), source_ends)
    return first, np.where(starts == ends, first, last)
