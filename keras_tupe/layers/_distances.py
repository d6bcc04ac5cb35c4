"""Distances between positions: tables by distance, and what the logits of all pairs take of them.

A table has a row for every distance from -k to k, and distances beyond have the rows of -k and k.
No tensor of shape (n, n, d) is made from it. Functions multiply with the rows of the table first,
which is a matrix product, and then move every entry to its column by a skew: a reshape that starts
each row one column later. Where the length is known, blocks of rows need only the part of the
table that they can reach; everything beyond the clipping distance is one value per row, spread out.
"""

import dataclasses

from keras import ops

# Small blocks waste less at the edges of the band, few blocks make small graphs.
SMALLEST_BLOCK = 64
MOST_BLOCKS = 16


@dataclasses.dataclass(frozen=True)
class RowBlock:
    """Rows `start` to `end`, whose columns `window_start` to `window_end` can be near.

    Columns before the window are further to the left of every row of the block than the reach,
    and columns after it further to the right. All ends are exclusive.
    """

    start: int
    end: int
    window_start: int
    window_end: int

    @property
    def rows(self):
        """Number of rows."""
        return self.end - self.start


def row_blocks(length, reach):
    """Returns the blocks of an n x n matrix, the last of them maybe smaller.

    Args:
        length: number of rows and columns n.
        reach: largest distance between a row and a column that counts as near.

    Example:
        >>> [(block.rows, block.window_start, block.window_end) for block in row_blocks(150, 20)]
        [(64, 0, 84), (64, 44, 148), (22, 108, 150)]
    """
    size = max(SMALLEST_BLOCK, -(-length // MOST_BLOCKS))
    return [
        RowBlock(start, end, max(0, start - reach), min(length, end + reach))
        for start in range(0, length, size)
        for end in [min(start + size, length)]
    ]


def split_rows(x, blocks):
    """Returns the rows of each block of a tensor `(batch, heads, length, ...)`."""
    if len(blocks) == 1:
        return [x]
    return ops.split(x, [block.start for block in blocks[1:]], axis=2)


def clipped_table(table, length):
    """Returns the values of the distances 1 - n .. n, those beyond -k and k repeated.

    Args:
        table: `(heads, dim, 2 k + 1)`; entry r belongs to distance r - k.
        length: number of tokens n, an integer or a scalar tensor.

    Returns:
        Tensor `(heads, dim, 2 n)`. Its last entry, of distance n, is the one that `skew`
        never reads.
    """
    reach = ops.shape(table)[-1] // 2
    distances = ops.arange(2 * length, dtype="int32") - (length - 1)
    return ops.take(table, ops.clip(distances, -reach, reach) + reach, axis=-1)


def skew(x, width):
    """Returns the matrices whose entry (i, u) is `x[i, rows - 1 + u - i]`.

    The memory of rows of one length is read again in rows that are one shorter, so that each
    starts one column later. Neither an index matrix nor a scatter in the backward pass is needed.

    Args:
        x: `(batch, heads, rows, width + rows)`; the last column is never read.
        width: columns of the answer, an integer or a scalar tensor.

    Returns:
        Tensor `(batch, heads, rows, width)`.
    """
    batch, heads, rows, columns = ops.shape(x)
    # `ops.slice`, because the gradient of x[..., a:b] is many times slower on TensorFlow.
    flat = ops.reshape(x, (batch, heads, rows * columns))
    flat = ops.slice(flat, (0, 0, 0), (batch, heads, rows * (columns - 1)))
    moved = ops.reshape(flat, (batch, heads, rows, columns - 1))
    return ops.slice(moved, (0, 0, 0, rows - 1), (batch, heads, rows, width))


def expand_distances(values, length):
    """Returns the matrices whose entry (i, j) is the value of distance j - i.

    Equation:

        out[h, i, j] = values[h, n - 1 + j - i]

    Args:
        values: tensor `(heads, 2 * length)`; column c belongs to distance c - (n - 1). The last
            one, of distance n, is never read.
        length: number of tokens n, an integer or a scalar tensor.

    Returns:
        Tensor `(heads, length, length)`.
    """
    heads, columns = ops.shape(values)
    rows = ops.broadcast_to(
        ops.reshape(values, (1, heads, 1, columns)), (1, heads, length, columns)
    )
    return ops.squeeze(skew(rows, length), 0)


def expand_table(table, length):
    """Returns the matrices of a table of scalars by clipped distance.

    Args:
        table: tensor `(2 k + 1, heads, 1)`; row r belongs to distance r - k.
        length: as above.

    Returns:
        Tensor `(heads, length, length)`.
    """
    values = clipped_table(ops.transpose(table, (1, 2, 0)), length)  # (h, 1, 2n)
    return expand_distances(ops.squeeze(values, 1), length)


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
