"""Where in the original text a piece comes from, when normalisation changes lengths.

All offsets count bytes of UTF-8. Text that is no UTF-8 is taken byte by byte.
"""

import itertools

import numpy as np

from keras_tupe.tokenizers._parts import for_each_part, parts, words


def numpy_rows(ragged):
    """Returns the rows of a ragged tensor as a list of arrays."""
    values, bounds = ragged.flat_values.numpy(), ragged.row_splits.numpy()
    return [values[start:end] for start, end in itertools.pairwise(bounds)]


def cover_split_characters(texts, spans, piece_sizes, normalized_sizes):
    """Gives pieces that hold a part of one character the whole of it.

    The SentencePiece op counts such a character to the last of these pieces alone.

    Args:
        texts: list of bytes, what the op was given.
        spans: list of `(starts, ends)` for each text, each `(pieces,)`.
        piece_sizes: list of arrays, `(pieces,)`: bytes of each piece, spaces apart; -1 for bytes
            and unknown pieces, to whose ends the op's offsets are right unless they are empty.
        normalized_sizes: function of a list of bytes that returns how many bytes, spaces apart,
            the model makes of each.

    Returns:
        List of the new `(starts, ends)`; the ends are never smaller than before.
    """
    spans = list(spans)
    rows = [row for row, text in enumerate(texts) if not text.isascii()]  # ASCII is never split
    cuts = [parts(texts[row]) for row in rows]
    for row, cut, sizes in zip(rows, cuts, for_each_part(normalized_sizes, cuts), strict=True):
        spans[row] = _covered(cut, sizes, *spans[row], piece_sizes[row])
    return spans


def through_normalisation(sources, targets, spans, normalize):
    """Takes offsets in normalised texts back to the original ones.

    What normalisation changed is taken as a whole: a piece that holds a byte of its result comes
    from all of it.

    Args:
        sources: list of bytes, the original texts.
        targets: list of bytes, the normalised texts.
        spans: list of `(starts, ends)` in each target, each `(pieces,)`.
        normalize: the function that normalises, of a list of bytes.

    Returns:
        List of `(starts, ends)` in the sources.
    """
    spans = list(spans)
    pairs = enumerate(zip(sources, targets, strict=True))
    rows = [n for n, (a, b) in pairs if not a.isascii() or len(a) != len(b)]  # others keep places
    cuts = [parts(sources[row]) for row in rows]
    for row, cut, results in zip(rows, cuts, for_each_part(normalize, cuts), strict=True):
        if b"".join(results) != targets[row]:
            # parts that merge after all, in scripts newer than this Python
            cut = words(sources[row])
            (results,) = for_each_part(normalize, [cut])
        spans[row] = _unfolded(cut, results, *spans[row])
    return spans


def whole_characters(text, starts, ends):
    """Widens offsets to whole characters, each with the marks that follow it.

    Args:
        text: bytes.
        starts, ends: integers, `(pieces,)`, offsets in it.

    Returns:
        `(starts, ends)`.
    """
    if text.isascii():
        return starts, ends
    bounds = np.cumsum([0, *map(len, parts(text))])
    starts = bounds[np.searchsorted(bounds, starts, "right") - 1]
    return starts, bounds[np.searchsorted(bounds, ends)]


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
