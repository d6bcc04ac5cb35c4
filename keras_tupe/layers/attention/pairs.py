"""Logits of a few queries or a few keys: global tokens, and the next token of a text."""

import copy

from keras import ops

from keras_tupe.layers._parts import starts
from keras_tupe.layers.attention.row_block import RowBlock


def pair_logits(terms, rows, columns, length, known=(None, None)):
    """Returns the logits of some queries and some keys, `(heads, batch, rows, columns)`.

    Args:
        terms: list of `Term`.
        rows: first query, an integer or a scalar tensor, and how many.
        columns: the same for keys.
        length: number of tokens, an integer or a scalar tensor.
        known: a tensor of the terms, and these rows of it, which need not be cut out then.

    Raises:
        NotImplementedError: if a term has no such form, and these are not all keys.
    """
    i = ops.expand_dims(ops.arange(rows[1], dtype="int32") + rows[0], 1)
    j = ops.expand_dims(ops.arange(columns[1], dtype="int32") + columns[0], 0)
    is_all = _is_all(columns, length)
    logits = None
    for term in terms:
        tensors = (
            [known[1] if x is known[0] else cut(x, rows) for x in term.rows],
            [x if is_all else cut(x, columns) for x in term.keys],
            term.whole,
        )
        found = term.on_pairs(logits, *tensors, i, j)
        if found is NotImplemented:
            found = _of_block(term, logits, rows, columns, length)
        logits = found
    return logits


def _is_all(columns, length):
    return isinstance(columns[0], int) and columns[0] == 0 and columns[1] is length


def _of_block(term, logits, rows, columns, length):
    if not _is_all(columns, length):
        raise NotImplementedError(
            "The logits of some keys, such as global tokens, need a term to have `on_pairs`: add "
            f"it to the class, see `Term.on_pairs`. Received: {type(term).__name__}"
        )
    term = term.in_rows().in_loop(length, rows[1])
    block = RowBlock(rows[0], rows[1], length)
    return term.on(logits, [cut(x, rows) for x in term.rows], term.keys, term.whole, block)


def last_rows(term, first):
    """Returns a term of which the tensors with rows hold the last rows alone.

    Args:
        term: a `Term`.
        first: the first of these rows, an integer.
    """
    found = copy.copy(term)
    found.rows = tuple(cut(x, (first, ops.shape(x)[2] - first)) for x in term.rows)
    return found


def cut(x, part):
    """Returns rows of a tensor.

    Args:
        x: `(heads, batch, length, width)`.
        part: the first row, an integer or a scalar tensor, and how many.
    """
    heads, batch, _, width = ops.shape(x)
    return ops.slice(x, starts(0, 0, part[0], 0), (heads, batch, part[1], width))
