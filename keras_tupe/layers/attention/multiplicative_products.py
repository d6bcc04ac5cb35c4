"""Products of query, key and a vector per distance, one distance after the other.

No matrix product gives these logits, as every pair of distance has weights of its own, and nothing
of shape (n, n, d) may be held. So a loop over distances takes one diagonal at a time, forward
and backward, and keeps nothing but its inputs in between. With a clipping distance the diagonals
near the middle are made once for all rows, and two matrix products give what is further away.

Gradients are those of one backward pass; second derivatives are not defined.
"""

import keras
from keras import ops

from keras_tupe.layers._compiled import compiled
from keras_tupe.layers._exporting import conversion_format
from keras_tupe.layers.attention.distances import clipped_table, join, skew, split_rows, tiles


def all_distances(query, key, table):
    """Returns `sum_t query_it * key_jt * a_{clip(j - i), t}` for all pairs.

    By n diagonals that go around: offset r is distance r + 1, then r + 1 - n.

    Args:
        query: `(heads, batch, length, dim)`.
        key: the same.
        table: `(2 k + 1, heads or 1, dim)`; row r is the vector of distance r - k. Distances
            beyond -k and k have the vectors of -k and k.

    Returns:
        Tensor `(heads, batch, length, length)`.
    """
    length = ops.shape(query)[2]
    table = clipped_table(ops.transpose(_for_all_heads(query, table), (1, 2, 0)), length)
    table = ops.transpose(table, (2, 0, 1))
    left, right = ops.split(table, 2, axis=0)  # 1 - n .. 0, and 1 .. n, where n is no distance
    key = _by_channel(key)
    around = ops.concatenate([key[..., 1:], key], axis=-1)
    table = ops.stack([right, left], axis=1)
    x = ops.transpose(_diagonals(_by_channel(query), around, table), (2, 1, 3, 0))  # (h, b, n, n)
    return skew(ops.concatenate([x, x], axis=-1), length)  # entry (i, j) is x[i, (j - i - 1) mod n]


def distances_of_block(query, key, table, block):
    """The same for a block of rows, by as many diagonals as cross it.

    Args:
        query: the rows of the block, `(heads, batch, rows, dim)`.
        key: all keys.
        table: as above; in a loop over blocks what `clipped_table` made of it, with the rows of a
            block as `beyond`.
        block: a `RowBlock`.
    """
    size, length = block.size, block.length
    if block.is_known:
        table = ops.transpose(_for_all_heads(query, table), (1, 2, 0))
        table = clipped_table(table, length, size)
    first = length - block.end + size
    columns = length + size
    near = ops.slice(table, (0, 0, first), (*ops.shape(table)[:2], columns))
    near = ops.expand_dims(ops.transpose(near, (2, 0, 1)), 1)
    key = ops.pad(_by_channel(key), ((0, 0), (0, 0), (0, 0), (size - 1, size)))
    x = ops.transpose(_diagonals(_by_channel(query), key, near), (2, 1, 3, 0))
    return skew(x, length)


def near_distances(query, key, table):
    """Returns the same for the distances -k to k, `(heads, batch, length, 2 k + 1)`."""
    reach = table.shape[0] // 2
    padded = ops.pad(_by_channel(key), ((0, 0), (0, 0), (0, 0), (reach, reach)))
    table = ops.expand_dims(_for_all_heads(query, table), 1)
    return ops.transpose(_diagonals(_by_channel(query), padded, table), (2, 1, 3, 0))


def near_and_far(query, key, near, ends, block):
    """Returns all distances of a block of rows from the near ones of its rows.

    Args:
        query: the rows of the block, `(heads, batch, rows, dim)`.
        key: all keys.
        near: the rows' part of what `near_distances` gave.
        ends: vectors of the distances -k and k, `(2, heads or 1, dim)`.
        block: a `RowBlock`.
    """
    lowest, highest = (ops.reshape(end, (-1, 1, 1, ends.shape[-1])) for end in ops.unstack(ends))
    if not block.is_known:
        return _near_and_far_in_loop(query, key, near, lowest, highest, block)
    rows = tiles(block.start, block.end)
    found = []
    for tile, q, band in zip(rows, split_rows(query, rows), split_rows(near, rows), strict=True):
        found.append(_tile(tile, q, key, band, lowest, highest))
    return join(found, 2)


def _tile(tile, query, key, band, lowest, highest):
    reach, length = band.shape[-1] // 2, key.shape[2]
    row, row_end = tile
    start, end = max(0, row - reach), min(length, row_end + reach)  # columns with a near pair
    before = _product(query * lowest, key, 0, end)
    after = _product(query * highest, key, start, length)
    # In the window, column u of row i is distance start + u - (row + i).
    left = start - (row_end - 1) + reach  # missing at the left end of the band
    right = end - row - reach
    sides = ((0, 0), (0, 0), (0, 0))
    band = ops.pad(band, (*sides, (max(0, -left), max(0, right))))
    columns = end - start + row_end - row
    band = ops.slice(band, (0, 0, 0, max(0, left)), (*ops.shape(band)[:3], columns))
    inside = skew(band, end - start)
    left_part, before = ops.split(before, [start], axis=-1) if start else (None, before)
    after, right_part = ops.split(after, [end - start], axis=-1) if end < length else (after, None)
    distance = _distances((row, row_end), (start, end))
    window = _chosen(distance, reach, before, inside, after)
    return join([part for part in (left_part, window, right_part) if part is not None], -1)


def _near_and_far_in_loop(query, key, near, lowest, highest, block):
    heads, batch, size, columns = ops.shape(near)
    reach, length = near.shape[-1] // 2, block.length
    before = ops.matmul(query * lowest, ops.swapaxes(key, -1, -2))
    after = ops.matmul(query * highest, ops.swapaxes(key, -1, -2))
    sides = ((0, 0), (0, 0), (0, 0))
    band = ops.pad(near, (*sides, (size - 1, size)))  # of the columns start - k .. end + k
    inside = skew(band, columns + size - 1)
    inside = _placed(inside, block.start, length + columns + size - 1)
    inside = ops.slice(inside, (0, 0, 0, reach), (heads, batch, size, length))
    distance = ops.arange(length, dtype="int32") - ops.expand_dims(block.row_numbers(), 1)
    return _chosen(distance, reach, before, inside, after)


def _placed(x, before, columns):
    """Returns a tensor of so many columns with `x` after `before` of them, zeros elsewhere."""
    if keras.backend.backend() == "jax":
        zeros = ops.zeros((*ops.shape(x)[:-1], columns), x.dtype)
        return ops.slice_update(zeros, (0, 0, 0, before), x)
    sides = ((0, 0), (0, 0), (0, 0))
    return ops.pad(x, (*sides, (before, columns - before - ops.shape(x)[-1])))


def _chosen(distance, reach, before, inside, after):
    far = ops.where(distance < 0, before, after)
    return ops.where(ops.abs(distance) <= reach, inside, far)


def _distances(rows, columns):
    rows, columns = (ops.arange(*ends, dtype="int32") for ends in (rows, columns))
    return columns - ops.expand_dims(rows, 1)


def _product(query, key, start, end):
    heads, batch, _, dim = ops.shape(key)
    key = ops.slice(key, (0, 0, start, 0), (heads, batch, end - start, dim))
    return ops.matmul(query, ops.swapaxes(key, -1, -2))


def _by_channel(x):
    """Returns `(heads, batch, length, dim)` as `(batch, heads, dim, length)`."""
    return ops.transpose(x, (1, 0, 3, 2))


def _for_all_heads(query, table):
    rows, _, dim = ops.shape(table)
    return ops.broadcast_to(table, (rows, ops.shape(query)[0], dim))


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


@compiled
def _forward(query, key, table):
    batch, heads, _, length = ops.shape(query)

    def diagonal(r):
        return ops.sum(query * _moved(key, r, length) * _factor(table, r, length), axis=2)

    return _stacked(diagonal, ops.shape(table)[0], (batch, heads, length), query.dtype)


@compiled
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
