"""Products of query, key and a vector per distance, one distance after the other.

No matrix product gives these logits, as every pair of distance has weights of its own, and nothing
of shape (n, n, d) may be held. So a loop over distances takes one diagonal at a time, forward
and backward, and keeps nothing but its inputs in between.
"""

import functools

import keras
from keras import ops

from keras_tupe.layers._distances import clipped_table, row_blocks, skew, split_rows
from keras_tupe.layers._exporting import conversion_format


def multiplicative_products(query, key, table):
    """Returns `sum_t query_it * key_jt * a_{clip(j - i), t}` for all pairs.

    Gradients are those of one backward pass; second derivatives are not defined.

    Args:
        query: `(batch, heads, length, dim)`.
        key: the same.
        table: `(2 k + 1, heads or 1, dim)`; row r is the vector of distance r - k. Distances
            beyond -k and k have the vectors of -k and k.

    Returns:
        Tensor `(batch, heads, length, length)`.
    """
    heads, length = query.shape[1:3]
    rows, dim = table.shape[0], table.shape[2]
    table = ops.broadcast_to(table, (rows, heads, dim))
    if length is None or rows >= length:
        return _all_distances(query, key, table)
    return _near_distances(query, key, table)


def _all_distances(query, key, table):
    """The same by n diagonals that go around: offset r is distance r + 1, then r + 1 - n."""
    length = ops.shape(query)[2]
    table = ops.transpose(clipped_table(ops.transpose(table, (1, 2, 0)), length), (2, 0, 1))
    left, right = ops.split(table, 2, axis=0)  # 1 - n .. 0, and 1 .. n, where n is no distance
    query, key = (ops.swapaxes(x, -1, -2) for x in (query, key))
    around = ops.concatenate([key[..., 1:], key], axis=-1)
    table = ops.stack([right, left], axis=1)
    x = ops.transpose(_diagonals(query, around, table), (1, 2, 3, 0))  # (b, h, n, n)
    return skew(ops.concatenate([x, x], axis=-1), length)  # entry (i, j) is x[i, (j - i - 1) mod n]


def _near_distances(query, key, table):
    """The same by 2 k + 1 diagonals, and two matrix products for what is further away."""
    length, reach = query.shape[2], table.shape[0] // 2
    padded = ops.pad(ops.swapaxes(key, -1, -2), ((0, 0), (0, 0), (0, 0), (reach, reach)))
    near = _diagonals(ops.swapaxes(query, -1, -2), padded, ops.expand_dims(table, 1))
    near = ops.transpose(near, (1, 2, 3, 0))  # (b, h, n, 2 k + 1)
    lowest, highest = (ops.expand_dims(table[row], 1) for row in (0, -1))
    blocks = row_blocks(length, reach)
    placed = []
    for block, q, band in zip(
        blocks, split_rows(query, blocks), split_rows(near, blocks), strict=True
    ):
        placed.append(_block_row(block, q, key, band, lowest, highest))
    return ops.concatenate(placed, axis=2) if len(placed) > 1 else placed[0]


def _block_row(block, query, key, band, lowest, highest):
    reach, length = band.shape[-1] // 2, key.shape[2]
    start, end = block.window_start, block.window_end
    before = _product(query * lowest, key, 0, end)
    after = _product(query * highest, key, start, length)
    # In the window, column u of row i is distance start + u - (block.start + i).
    left = start - (block.end - 1) + reach  # missing at the left end of the band
    right = end - block.start - reach
    sides = ((0, 0), (0, 0), (0, 0))
    band = ops.pad(band, (*sides, (max(0, -left), max(0, right))))
    band = ops.slice(
        band, (0, 0, 0, max(0, left)), (*ops.shape(band)[:3], end - start + block.rows)
    )
    inside = skew(band, end - start)
    columns, rows = (
        ops.arange(*ends, dtype="int32") for ends in ((start, end), (block.start, block.end))
    )
    distance = columns - ops.expand_dims(rows, 1)
    left_part, before = ops.split(before, [start], axis=-1) if start else (None, before)
    after, right_part = ops.split(after, [end - start], axis=-1) if end < length else (after, None)
    window = ops.where(distance < 0, before, after)
    window = ops.where(ops.abs(distance) <= reach, inside, window)
    parts = [part for part in (left_part, window, right_part) if part is not None]
    return ops.concatenate(parts, axis=-1) if len(parts) > 1 else window


def _product(query, key, start, end):
    batch, heads, _, dim = ops.shape(key)
    key = ops.slice(key, (0, 0, start, 0), (batch, heads, end - start, dim))
    return ops.matmul(query, ops.swapaxes(key, -1, -2))


@ops.custom_gradient
def _diagonals(query, key, table):
    """Returns `out[r, b, h, i] = sum_t query[t, i] * key[t, i + r] * a_r[t]`.

    Args:
        query: `(batch, heads, dim, n)`.
        key: `(batch, heads, dim, m)`, m >= n - 1 + offsets.
        table: `(offsets, sides, heads, dim)`. With one side a_r is the same for all i; with two
            it is the second's from i + r = n - 1 on.
    """
    inputs = [ops.stop_gradient(x) for x in (query, key, table)]

    def gradients(*arguments, upstream=None):
        return _backward(*inputs, arguments[0] if upstream is None else upstream)

    return _forward(*inputs), gradients


def _compiled(function):
    """Returns the function compiled by XLA on TensorFlow, and as it is on other backends.

    Keras compiles whole training steps only, and on CPU not by itself. Converters to
    other formats take nothing that XLA compiled.
    """

    @functools.cache
    def jitted():
        import tensorflow as tf

        return tf.function(function, jit_compile=True)

    @functools.wraps(function)
    def call(*args):
        is_tensorflow = keras.backend.backend() == "tensorflow" and conversion_format() is None
        return jitted()(*args) if is_tensorflow else function(*args)

    return call


@_compiled
def _forward(query, key, table):
    batch, heads, _, length = ops.shape(query)

    def diagonal(r):
        return ops.sum(query * _moved(key, r, length) * _factor(table, r, length), axis=2)

    return _stacked(diagonal, ops.shape(table)[0], (batch, heads, length), query.dtype)


@_compiled
def _backward(query, key, table, upstream):
    """Returns the three gradients, by a loop each: one loop for all is slower."""
    batch, heads, _, length = ops.shape(query)
    offsets, sides = ops.shape(table)[0], table.shape[1]

    def gradient(r):
        row = ops.slice(upstream, (r, 0, 0, 0), (1, batch, heads, length))
        return ops.reshape(row, (batch, heads, 1, length))

    def to_query(r, total):
        return total + gradient(r) * _factor(table, r, length) * _moved(key, r, length)

    def to_key(r, total):
        part = gradient(r) * _factor(table, r, length) * query
        return ops.slice_update(total, (0, 0, 0, r), _moved(total, r, length) + part)

    def to_table(r, total):
        products = gradient(r) * query * _moved(key, r, length)
        parts = [products]
        if sides == 2:
            is_first = _is_first_side(r, length)
            parts = [ops.where(is_first, products, 0), ops.where(is_first, 0, products)]
        sums = ops.stack([_sum_of_positions(part) for part in parts])  # (sides, h, d)
        return ops.slice_update(total, (r, 0, 0, 0), ops.expand_dims(sums, 0))

    return tuple(
        ops.fori_loop(0, offsets, step, ops.zeros_like(x))
        for step, x in ((to_query, query), (to_key, key), (to_table, table))
    )


def _sum_of_positions(x):
    """Sums over batch and positions; a matrix product, as XLA's sum over the last axis is slow."""
    ones = ops.ones((ops.shape(x)[-1], 1), x.dtype)
    return ops.squeeze(ops.matmul(ops.sum(x, axis=0), ones), -1)


def _moved(key, r, length):
    batch, heads, dim, _ = ops.shape(key)
    return ops.slice(key, (0, 0, 0, r), (batch, heads, dim, length))


def _is_first_side(r, length):
    return ops.arange(length, dtype="int32") < length - 1 - r


def _factor(table, r, length):
    _, sides, heads, dim = ops.shape(table)
    rows = ops.reshape(
        ops.slice(table, (r, 0, 0, 0), (1, sides, heads, dim)), (sides, heads, dim, 1)
    )
    return rows if sides == 1 else ops.where(_is_first_side(r, length), rows[:1], rows[1:])


def _stacked(step, count, shape, dtype):
    """Returns `step(0)` .. `step(count - 1)`, stacked along a new first axis.

    Args:
        step: function of an integer tensor, returns a tensor.
        count: number of steps, an integer or a scalar tensor.
        shape: shape of one answer, integers or scalar tensors.
        dtype: dtype of the answers.

    Returns:
        Tensor `(count, *shape)`.
    """
    if conversion_format() == "onnx":  # slices are updated by an op of XLA's
        return ops.map(step, ops.arange(count, dtype="int32"))
    rest = (0,) * len(shape)

    def put(index, out):
        return ops.slice_update(out, (index, *rest), ops.expand_dims(step(index), 0))

    return ops.fori_loop(0, count, put, ops.zeros((count, *shape), dtype))
