"""Products of queries or keys with vectors that belong to distances, without an (n, n, d) tensor.

Both functions multiply with the rows of the table first, which is a matrix product, and then
move every entry to its place by a skew: a reshape that starts each row one place later. Where the
length is known, blocks of rows need only the part of the table that they can reach; everything
beyond the clipping distance is one value per row, spread out.
"""

from keras import ops

from keras_tupe.layers._blocks import row_blocks, split_rows
from keras_tupe.layers._clipped_table import clipped_table
from keras_tupe.layers._skew import skew


def query_distance_products(query, table):
    """Returns `query_i . a_{clip(j - i)}` for all pairs.

    Args:
        query: `(batch, heads, length, dim)`.
        table: `(2 k + 1, heads or 1, dim)`; row r is the vector of distance r - k. Distances
            beyond -k and k have the vectors of -k and k.

    Returns:
        Tensor `(batch, heads, length, length)`.
    """
    return _products(query, table, lambda block: block, row_axis=-2)


def key_distance_products(key, table):
    """Returns `key_j . a_{clip(j - i)}` for all pairs; arguments as in the function above.

    From the key's side a distance has the other sign, and keys are columns.
    """
    return _products(key, ops.flip(table, axis=0), lambda x: ops.swapaxes(x, -1, -2), row_axis=-1)


def _products(vectors, table, place, row_axis):
    table = ops.transpose(table, (1, 2, 0))  # (h, d, 2 k + 1)
    length = vectors.shape[2]
    if length is None:
        length = ops.shape(vectors)[2]
        return place(skew(_times(vectors, clipped_table(table, length)), length))
    reach = table.shape[-1] // 2
    blocks = row_blocks(length, reach)
    pad = blocks[0].rows  # the first block is never smaller than another
    lowest, highest = table[:, :, :1], table[:, :, -1:]
    around = [ops.repeat(lowest, pad - 1, axis=-1), table, ops.repeat(highest, pad, axis=-1)]
    extended = ops.concatenate(around, axis=-1)
    placed = []
    for block, part in zip(blocks, split_rows(vectors, blocks), strict=True):
        width = block.window_end - block.window_start
        first = block.window_start - (block.end - 1) + reach + pad - 1  # of the lowest distance
        near = ops.slice(extended, (0, 0, first), (*extended.shape[:2], width + block.rows))
        pieces = [place(skew(_times(part, near), width))]
        if block.window_start:
            pieces.insert(0, _spread(place(_times(part, lowest)), block.window_start, row_axis))
        if block.window_end < length:
            right = length - block.window_end
            pieces.append(_spread(place(_times(part, highest)), right, row_axis))
        placed.append(_join(pieces, -3 - row_axis))
    return _join(placed, row_axis)


def _times(vectors, table):
    """Returns the products of `(batch, heads, rows, dim)` and `(heads or 1, dim, columns)`.

    One head is one product of matrices. TensorFlow 2.21 broadcasts one matrix over a batch of shape
    (batch, 1) wrongly on CPUs, in oneDNN and for more than 16 rows: it returns what was in memory,
    and writes beyond its own. So do the gradients.
    """
    if vectors.shape[1] != 1:
        return ops.matmul(vectors, table)
    batch, heads, rows, dim = ops.shape(vectors)
    products = ops.matmul(ops.reshape(vectors, (-1, dim)), ops.squeeze(table, 0))
    return ops.reshape(products, (batch, heads, rows, ops.shape(products)[-1]))


def _spread(x, count, row_axis):
    """Repeats the only entry of each row of a block, or of each column of a column block."""
    shape = list(ops.shape(x))
    shape[-3 - row_axis] = count
    return ops.broadcast_to(x, shape)


def _join(parts, axis):
    return ops.concatenate(parts, axis=axis) if len(parts) > 1 else parts[0]
