"""Attention in blocks of query rows, of which no more than one is alive at a time.

Forward, a block makes its logits against all keys, their softmax and the sums of values, and keeps
nothing but those. Backward, it makes them again, and adds up what the keys, the values and the
tensors of the terms get. Blocks are steps of a loop, but where a term is much cheaper for blocks
that are known when the graph is made: if they are few, they follow each other in the graph.
"""

import contextlib

import keras
from keras import ops

from keras_tupe.layers._exporting import is_saved
from keras_tupe.layers.attention.backend import (
    loop,
    made_late,
    vector_jacobian_product,
    with_gradient,
)
from keras_tupe.layers.attention.distances import join, split_rows
from keras_tupe.layers.attention.masks import masked
from keras_tupe.layers.attention.row_block import RowBlock
from keras_tupe.layers.attention.weighted_values import backward, forward, softmax

MOST_ROWS, FEWEST_ROWS = 256, 64  # of a block
MOST_LOGITS = 2**22  # of a block, while it has more than the fewest rows
MOST_KNOWN = 16  # blocks that follow each other in the graph


def attend_in_blocks(terms, value, mask, dropout, rows=None, known=None, first=0):
    """Returns the sums of values, `(heads, batch, rows, key_dim)`; see `core.attend`.

    Args:
        terms: list of `Term`; the first one's first tensor has a row for each query.
        value: `(heads, batch, length, key_dim)`.
        mask: what `key_mask` returned, or `None`.
        dropout: a `ScoreDropout`, or `None`.
        rows: rows of a block; by the size of the logits if `None`.
        known: whether blocks follow each other in the graph; by terms and length if `None`.
        first: the query of the first row, an integer: where it is not 0, as of the queries of a
            segment behind the keys of a memory, the terms are those of `last_rows`.
    """
    terms = terms if first else [term.in_rows() for term in terms]
    query = terms[0].rows[0]
    length = query.shape[-2]
    rows = rows or block_rows(value.shape)
    if first:
        known = True  # a segment is short
    if known is None:
        gains = any(term.gains_by_known_blocks for term in terms)
        known = gains and length is not None and length <= MOST_KNOWN * rows
    if known:
        way = _Unrolled(length, rows, first)
    else:
        way = _Loop(length or ops.shape(query)[-2], rows)
        terms = [term.in_loop(way.length, way.size) for term in terms]
    attention = _Attention(terms, mask, dropout, way)
    if is_saved():
        return attention.forward(attention.tensors(value))
    return with_gradient(attention.forward, attention.backward, attention.tensors(value))


def block_rows(shape):
    """Returns the rows of a block.

    Args:
        shape: `(heads, batch, length, ...)`, each `None` if it is not known.
    """
    heads, batch, length = (size or 1 for size in shape[:3])
    fitting = MOST_LOGITS // (heads * batch * length)
    return max(FEWEST_ROWS, min(MOST_ROWS, 2 ** (max(fitting, 1).bit_length() - 1)))


def flat(terms):
    """Returns all tensors of terms: those with rows, those with keys, then the others."""
    return [x for kind in ("rows", "keys", "whole") for term in terms for x in getattr(term, kind)]


def on_block(terms, tensors, block):
    """Returns the logits of a block.

    Args:
        terms: list of `Term`.
        tensors: as `flat` lists them, cut to the block.
        block: a `RowBlock`.
    """
    given = iter(tensors)
    kinds = [
        [[next(given) for _ in getattr(term, kind)] for term in terms]
        for kind in ("rows", "keys", "whole")
    ]
    logits = None
    for term, *parts in zip(terms, *kinds, strict=True):
        logits = term.on(logits, *parts, block)
    return logits


class _Attention:
    """Forward and backward pass over blocks, for flat lists of tensors."""

    def __init__(self, terms, mask, dropout, way):
        self._terms, self._mask, self._dropout, self._way = terms, mask, dropout, way
        self._row_count = sum(len(term.rows) for term in terms)

    def tensors(self, value):
        return [*flat(self._terms), value]

    def _logits(self, tensors, block):
        return on_block(self._terms, tensors, block)

    def _split(self, tensors):
        return tensors[: self._row_count], tensors[self._row_count : -1], tensors[-1]

    def forward(self, tensors):
        rows, whole, value = self._split(tensors)

        def step(sums, block, rows):
            scores = softmax(masked(self._logits([*rows, *whole], block), self._mask))
            return sums, [forward(scores, value, self._dropout, block.start)]

        _, (out,) = self._way.over(step, [], rows, [value])
        return out

    def backward(self, tensors, out, upstream):
        rows, whole, value = self._split(made_late(tensors, upstream))

        def step(sums, block, rows):
            *rows, out, upstream = rows
            count = len(rows)
            logits, pull_back = vector_jacobian_product(
                lambda tensors: self._logits(tensors, block), [*rows, *whole]
            )
            scores = softmax(masked(logits, self._mask))
            of_logits, of_value = backward(scores, value, out, upstream, self._dropout, block.start)
            found = pull_back(of_logits)
            added = [*found[count:], of_value]
            return [a + b for a, b in zip(sums, added, strict=True)], found[:count]

        zeros = [ops.zeros_like(x) for x in (*whole, value)]
        sums, of_rows = self._way.over(step, zeros, [*rows, out, upstream], rows)
        return [*of_rows, *sums]


class _Unrolled:
    """Blocks one after the other in the graph."""

    def __init__(self, length, size, first=0):
        self._blocks = [
            RowBlock(first + start, min(size, length - start), first + length)
            for start in range(0, length, size)
        ]

    def over(self, step, sums, tensors, like):
        """Returns the last sums, and what the steps gave, joined along the rows.

        Args:
            step: (sums, block, rows of the tensors) -> (sums, list of tensors with rows).
            sums: list of tensors.
            tensors: list of tensors with rows.
            like: tensors like those that the steps give, but for the number of rows.
        """
        ends = [(block.start, block.end) for block in self._blocks]
        parts = [split_rows(x, ends) for x in tensors]
        found = []
        for block, *rows in zip(self._blocks, *parts, strict=True):
            with _after(found[-1] if found else []):
                sums, given = step(sums, block, rows)
            found.append(given)
        return sums, [join(pieces, 2) for pieces in zip(*found, strict=True)]


class _Loop:
    """Blocks as steps of a loop; the last one is filled up."""

    def __init__(self, length, size):
        self.length = length
        self._count = -(-length // size)
        self.size = -(-length // self._count)

    def over(self, step, sums, tensors, like):
        """As `_Unrolled.over`."""

        def body(index, sums, rows):
            return step(sums, RowBlock(index * self.size, self.size, self.length), rows)

        rows = self.size if isinstance(self.size, int) else None
        like = [(x.dtype, (*x.shape[:2], rows, x.shape[3])) for x in like]
        blocks = [apart(x, self._count, self.size, self.length) for x in tensors]
        sums, found = loop(body, self._count, sums, blocks, like)
        return sums, [together(x, self.length) for x in found]


def apart(x, count, size, length):
    """Returns the rows of each block, `(count, heads, batch, size, ...)`.

    Args:
        x: `(heads, batch, length, ...)`.
        count: number of blocks, which may end beyond the last row, an integer or a scalar tensor.
        size: rows of a block, the same.
        length: number of rows, the same.
    """
    heads, batch, _, width = ops.shape(x)
    sides = ((0, 0), (0, 0), (0, count * size - length), (0, 0))
    x = ops.reshape(ops.pad(x, sides), (heads, batch, count, size, width))
    return ops.transpose(x, (2, 0, 1, 3, 4))


def together(x, length):
    """Returns the rows of all blocks, `(heads, batch, length, ...)`.

    Args:
        x: `(count, heads, batch, size, ...)`.
        length: number of rows, an integer or a scalar tensor.
    """
    count, heads, batch, size, width = ops.shape(x)
    x = ops.reshape(ops.transpose(x, (1, 2, 0, 3, 4)), (heads, batch, count * size, width))
    return ops.slice(x, (0, 0, 0, 0), (heads, batch, length, width))


def _after(tensors):
    """Inside, TensorFlow's ops wait for the tensors: so that one block is alive at a time."""
    if keras.backend.backend() != "tensorflow" or not tensors:
        return contextlib.nullcontext()
    import tensorflow as tf

    return tf.control_dependencies(tensors)
