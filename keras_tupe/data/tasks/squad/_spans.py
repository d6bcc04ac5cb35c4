"""Pieces of contexts and the characters they come from."""

import itertools

import numpy as np

_TEXTS_PER_CALL = 1024


def tokenize_rows(tokenizer, texts):
    """Yields `(ids, starts, ends)` of each text: int32 arrays, `(pieces,)`, offsets in bytes."""
    for block in _blocks(texts):
        yield from zip(*map(_rows, tokenizer.tokenize_with_offsets(block)), strict=True)


def character_spans(text, starts, ends):
    """Byte offsets to characters, without white space at the ends of the pieces.

    Args:
        text: the string.
        starts: integers, `(pieces,)`, offsets in its UTF-8 bytes.
        ends: integers, `(pieces,)`.

    Returns:
        int32, `(pieces, 2)`: `text[start:end]` is the piece's text; start == end if it has none.
    """
    if not text.isascii():
        units = np.frombuffer(text.encode("utf-8"), "uint8")
        before = np.cumsum(np.concatenate([[0], (units & 0xC0) != 0x80]))
        starts, ends = before[starts], before[ends]
    is_text = np.array([not character.isspace() for character in text])
    places = np.arange(len(text))
    next_text = np.where(is_text, places, len(text))
    next_text = np.minimum.accumulate(next_text[::-1])[::-1]
    behind_text = np.maximum.accumulate(np.where(is_text, places + 1, 0))
    first = np.append(next_text, len(text))[starts]
    last = np.append(0, behind_text)[ends]
    first = np.minimum(first, ends)
    return np.stack([first, np.maximum(last, first)], axis=1).astype("int32")


def answer_tokens(spans, answers):
    """The pieces that hold an answer.

    Several answers are tried in turn for one that begins and ends where pieces do; if there is
    none, the first one that touches a piece is widened to whole pieces.

    Args:
        spans: `(pieces, 2)`, characters, as of `character_spans`.
        answers: tuple of `(text, start)`.

    Returns:
        `(first, last, is_exact)`: numbers of pieces, and whether they hold the answer and nothing
        else; `None` if no piece holds a part of any answer.
    """
    found = []
    for text, start in answers:
        end = start + len(text.rstrip())
        start += len(text) - len(text.lstrip())
        pieces = np.flatnonzero((spans[:, 0] < end) & (spans[:, 1] > start))
        if len(pieces):
            first, last = int(pieces[0]), int(pieces[-1])
            is_exact = spans[first, 0] == start and spans[last, 1] == end
            found.append((first, last, bool(is_exact)))
    return next((item for item in found if item[2]), found[0] if found else None)


def _blocks(texts):
    texts = iter(texts)
    while block := list(itertools.islice(texts, _TEXTS_PER_CALL)):
        yield block


def _rows(ragged):
    """The rows of a ragged tensor, or of a list of lists, as arrays."""
    if hasattr(ragged, "flat_values"):
        bounds = np.asarray(ragged.row_splits).tolist()
        values = np.asarray(ragged.flat_values)
        return [values[start:end] for start, end in itertools.pairwise(bounds)]
    return [np.asarray(row, "int32") for row in ragged]
