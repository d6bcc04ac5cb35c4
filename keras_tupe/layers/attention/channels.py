"""Products of query, key and a vector per distance (Huang's method 3), one diagonal at a time.

No product of matrices gives these logits, as every pair of distance has weights of its own, and
nothing of shape (n, n, d) may be held. So a loop takes one diagonal at a time, forward and
backward, and keeps nothing but its inputs in between. There are no second derivatives.
"""

from keras import ops

from keras_tupe.layers._tracing import compiled, traced_for
from keras_tupe.layers.attention.block import near_entries, row_vectors, skew


def channel_distances(query, key, table, block):
    """Returns `sum_t query_it key_jt table_{j - i, t}` for the pairs of a `block`.

    `query`, `key` and `table` are as of `query_distances` and `key_distances`.

    As many diagonals as there are keys, each of which goes around them, so that every pair is on
    one: the diagonal r of query i has the distances `first + r + keys` before its end, then
    `first + r`.
    """
    block = block.distances
    rows, keys = block.rows, block.keys
    if block.is_tall:
        flipped = ops.flip(table, axis=-1)
        return ops.swapaxes(channel_distances(key, query, flipped, block.transposed), -1, -2)
    if block.is_row:
        products = key * row_vectors(table, block)
        return ops.matmul(query, ops.swapaxes(products, -1, -2))
    heads, batch, _, dim = ops.shape(query)
    first = block.offset - block.start - (rows - 1)
    sides = ops.stack([near_entries(table, first + keys, keys), near_entries(table, first, keys)])
    sides = ops.broadcast_to(ops.transpose(sides, (3, 0, 1, 2)), (keys, 2, heads, dim))
    query, key = (ops.transpose(x, (1, 0, 3, 2)) for x in (query, key))  # (b, h, d, length)
    last = ops.slice(key, (0, 0, 0, keys - (rows - 1)), (batch, heads, dim, rows - 1))
    x = _diagonals(query, ops.concatenate([last, key], axis=-1), sides)
    x = ops.transpose(x, (2, 1, 3, 0))  # (h, b, rows, keys)
    again = ops.slice(x, (0, 0, 0, 0), (heads, batch, rows, rows))
    return skew(ops.concatenate([x, again], axis=-1), keys)


@ops.custom_gradient
def _diagonals(query, key, table):
    """Returns `out[r, b, h, i] = sum_t query[t, i] * key[t, i + r] * a_r[t]`.

    Queries `(batch, heads, dim, n)`, keys `(batch, heads, dim, m)` with m >= n - 1 + offsets; table
    `(offsets, 2, heads, dim)`: a_r is the second from i + r = n - 1 on.
    """
    inputs = [ops.stop_gradient(x) for x in (query, key, table)]

    def gradients(*arguments, upstream=None):
        return _backward(*inputs, arguments[0] if upstream is None else upstream)

    return _forward(*inputs), gradients


@compiled
def _forward(query, key, table):
    batch, heads, _, length = ops.shape(query)
    count = ops.shape(table)[0]

    def diagonal(r):
        return ops.sum(query * _moved(key, r, length) * _factor(table, r, length), axis=2)

    if traced_for() == "onnx":  # slices are updated by an op of XLA's
        return ops.map(diagonal, ops.arange(count, dtype="int32"))

    def put(r, out):
        return ops.slice_update(out, (r, 0, 0, 0), ops.expand_dims(diagonal(r), 0))

    return ops.fori_loop(0, count, put, ops.zeros((count, batch, heads, length), query.dtype))


@compiled
def _backward(query, key, table, upstream):
    """Returns the three gradients, by a loop each: one loop for all is slower."""
    batch, heads, _, length = ops.shape(query)

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
        is_first = _is_first_side(r, length)
        parts = ops.where(is_first, products, 0), ops.where(is_first, 0, products)
        sums = ops.stack([_sum_of_positions(part) for part in parts])  # (2, h, d)
        return ops.slice_update(total, (r, 0, 0, 0), ops.expand_dims(sums, 0))

    return tuple(
        ops.fori_loop(0, ops.shape(table)[0], step, ops.zeros_like(x))
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
    rows = ops.slice(table, (r, 0, 0, 0), (1, sides, heads, dim))
    rows = ops.reshape(rows, (sides, heads, dim, 1))
    return ops.where(_is_first_side(r, length), rows[:1], rows[1:])
