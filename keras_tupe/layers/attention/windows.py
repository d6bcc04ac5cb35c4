"""Attention in windows: blocks of query rows that see few keys, so that costs grow with the length.

The keys that each block of rows sees are cut out of all keys, which for all blocks together are a
few copies of the keys, moved against each other. Global tokens at the beginning are keys of every
block beside its own; what they see themselves is not made here. As in `blocks`, no more than one
block is alive at a time, and the backward pass makes it again.
"""

from keras import ops

from keras_tupe.layers._exporting import is_saved
from keras_tupe.layers.attention.backend import (
    loop,
    made_late,
    vector_jacobian_product,
    with_gradient,
)
from keras_tupe.layers.attention.blocks import apart, on_block, together
from keras_tupe.layers.attention.masks import MASKED_LOGIT
from keras_tupe.layers.attention.pairs import pair_logits
from keras_tupe.layers.attention.row_block import RowBlock
from keras_tupe.layers.attention.weighted_values import backward, forward, softmax

FEWEST_ROWS, MOST_ROWS = 64, 256  # of a block


def block_rows(visible):
    """Returns the rows of a block: about half of what a query sees.

    Args:
        visible: a `Visible` with a window.
    """
    half = (visible.left + visible.right) // 2
    return max(FEWEST_ROWS, min(MOST_ROWS, 2 ** max(half - 1, 1).bit_length()))


def window_terms(terms, visible, rows=None):
    """Returns the terms for windows; `None` if a term has no such form, or there is no window.

    Args:
        terms: list of `Term`.
        visible: a `Visible`, or `None`.
        rows: rows of a block; by the window if `None`.
    """
    if visible is None or not visible.has_window:
        return None
    width = visible.left + (rows or block_rows(visible)) + visible.right
    found = [term.in_window(width) for term in terms]
    return None if any(term is None for term in found) else found


def attend_in_windows(terms, value, mask, dropout, visible, rows=None):
    """Returns the sums of values, `(heads, batch, length, key_dim)`; see `core.attend`.

    Args:
        terms: list of `Term`, all of which have a form for windows.
        value: `(heads, batch, length, key_dim)`.
        mask: what `key_mask` returned, or `None`.
        dropout: a `ScoreDropout`, or `None`.
        visible: a `Visible` with a window.
        rows: rows of a block; by the window if `None`.
    """
    local = window_terms(terms, visible, rows)
    length = value.shape[2] or ops.shape(value)[2]
    windows = _Windows(local, mask, dropout, visible, length, rows or block_rows(visible))
    rows = [x for term in local for x in term.rows]
    whole = [x for term in local for x in term.whole]
    if visible.num_global:
        count = visible.num_global
        logits = pair_logits(terms, (0, length), (0, count), length)
        rows.append(logits if mask is None else logits + mask[..., :count])
        whole.append(value[:, :, :count])
    tensors = [*rows, *(x for term in local for x in term.keys), value, *whole]
    windows.counts = len(rows), len(tensors) - len(rows) - len(whole)
    if is_saved():
        return windows.forward(tensors)
    return with_gradient(windows.forward, windows.backward, tensors)


class _Windows:
    """Forward and backward pass, for flat lists of tensors: with rows, with keys, and whole.

    Attributes:
        counts: numbers of tensors with rows and of those with keys; the last of these are the
            values.
    """

    def __init__(self, terms, mask, dropout, visible, length, rows):
        self._terms, self._dropout = terms, dropout
        self._left, self._size = visible.left, rows
        self._width = visible.left + rows + visible.right  # keys of a block
        self._num_global = visible.num_global
        self._has_globals = self._num_global > 0
        self._length = length
        self._count = -(-length // rows)
        self._mask = self._masks(mask, terms[0].rows[0].dtype)

    def _masks(self, mask, dtype):
        """Returns what is added to the logits of the keys of each block."""
        shape = (1, 1, self._length, 1) if mask is None else (1, *ops.shape(mask)[1:2], -1, 1)
        is_key = ops.ones(shape, dtype) if mask is None else ops.reshape(mask, shape) > -1
        keys = self._framed(ops.cast(is_key, dtype))
        found = ops.where(keys > 0, ops.cast(0, dtype), ops.cast(MASKED_LOGIT, dtype))
        return ops.swapaxes(found, -1, -2)

    def _framed(self, x):
        """Returns the keys of each block, `(blocks, heads, batch, width, ...)`."""
        heads, batch, _, channels = ops.shape(x)
        size, count = self._size, self._count
        pieces = -(-self._width // size)
        rows = (count + pieces - 1) * size
        x = ops.pad(x, ((0, 0), (0, 0), (self._left, rows - self._left - self._length), (0, 0)))
        x = ops.reshape(x, (heads, batch, count + pieces - 1, size, channels))
        moved = [
            ops.slice(x, (0, 0, piece, 0, 0), (heads, batch, count, size, channels))
            for piece in range(pieces)
        ]
        x = ops.concatenate(moved, axis=3) if pieces > 1 else moved[0]
        x = ops.slice(x, (0, 0, 0, 0, 0), (heads, batch, count, self._width, channels))
        return ops.transpose(x, (2, 0, 1, 3, 4))

    def _arranged(self, tensors):
        """Returns tensors with rows and with keys by blocks."""
        rows = self.counts[0]
        return [
            *(apart(x, self._count, self._size, self._length) for x in tensors[:rows]),
            *(self._framed(x) for x in tensors[rows:]),
        ]

    def _step(self, index, entries, whole):
        """Returns the block, its logits as a function of the terms' tensors, and these tensors."""
        rows = self.counts[0] - self._has_globals
        block = RowBlock(self._left, self._size, self._width, index * self._size - self._left)
        value = [*whole[len(whole) - self._has_globals :], entries[sum(self.counts) - 1]]
        found = [*entries[:rows], *entries[self.counts[0] : sum(self.counts) - 1]]
        found += whole[: len(whole) - self._has_globals]
        return block, found, ops.concatenate(value, axis=2) if len(value) > 1 else value[0]

    def _scores(self, logits, mask, entries):
        logits = logits + mask
        if self._has_globals:
            logits = ops.concatenate([entries[self.counts[0] - 1], logits], axis=-1)
        return softmax(logits)

    def forward(self, tensors):
        """Returns the sums of values."""
        count = sum(self.counts)
        whole = tensors[count:]

        def step(index, sums, entries):
            mask, *entries = entries
            block, found, value = self._step(index, entries, whole)
            scores = self._scores(on_block(self._terms, found, block), mask, entries)
            return sums, [forward(scores, value, self._dropout, index * self._size)]

        arranged = self._arranged(tensors[:count])
        value = tensors[count - 1]
        like = [(value.dtype, (*value.shape[:2], self._size, value.shape[3]))]
        _, (out,) = loop(step, self._count, [], [self._mask, *arranged], like)
        return together(out, self._length)

    def backward(self, tensors, out, upstream):
        """Returns the gradients of the tensors."""
        count, has_globals = sum(self.counts), self._has_globals
        tensors = made_late(tensors, upstream)
        whole = tensors[count:]
        arranged, pull_back = vector_jacobian_product(self._arranged, tensors[:count])

        def step(index, sums, entries):
            mask, out, upstream, *entries = entries
            block, found, value = self._step(index, entries, whole)
            logits, pull_back = vector_jacobian_product(
                lambda tensors: on_block(self._terms, tensors, block), found
            )
            scores = self._scores(logits, mask, entries)
            of_scores, of_value = backward(
                scores, value, out, upstream, self._dropout, index * self._size
            )
            rows = self.counts[0] - has_globals
            of_global_scores, of_global_value = [], []
            if has_globals:
                first, of_scores = _parted(of_scores, 3, self._num_global, self._width)
                of_global_scores = [first]
                first, of_value = _parted(of_value, 2, self._num_global, self._width)
                of_global_value = [first]
            gradients = pull_back(of_scores)
            at = count - 1 - has_globals
            given = [*gradients[:rows], *of_global_scores, *gradients[rows:at], of_value]
            added = [*gradients[at:], *of_global_value]
            return [a + b for a, b in zip(sums, added, strict=True)], given

        like = [(x.dtype, x.shape[1:]) for x in arranged]
        sums, of_arranged = loop(
            step,
            self._count,
            [ops.zeros_like(x) for x in whole],
            [
                self._mask,
                *(apart(x, self._count, self._size, self._length) for x in (out, upstream)),
                *arranged,
            ],
            like,
        )
        return [*pull_back(list(of_arranged)), *sums]


def _parted(x, axis, *sizes):
    """Returns the parts of a tensor along an axis, whose sizes are known where its own is not."""
    found, start = [], 0
    for size in sizes:
        shape = list(ops.shape(x))
        shape[axis] = size
        found.append(ops.slice(x, [start if n == axis else 0 for n in range(4)], shape))
        start += size
    return found
