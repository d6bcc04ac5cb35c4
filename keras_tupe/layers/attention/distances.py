"""Distances between positions: tables by distance, and what the logits of all pairs take of them.

A table has a row for every distance from -k to k, and distances beyond have the rows of -k and k.
No tensor of shape (n, n, d) is made from it. Functions multiply with the rows of the table first,
which is a matrix product, and then move every entry to its column by a skew: a reshape that starts
each row one column later. Logits are made in blocks of query rows; where a block is known when the
graph is made, tiles of it need only the part of the table that they can reach, and everything
beyond the clipping distance is one value per row, spread out. Heads come before the batch, so that
the product of a head is one product of matrices.
"""

from keras import ops

from keras_tupe.layers.attention.row_block import whole_sequence

# Small tiles waste less at the edges of the band, few tiles make small graphs.
SMALLEST_TILE = 64
MOST_TILES = 16


def tiles(start, end):
    """Returns the ends of tiles of some rows, `[(start, end), ...]`.

    Example:
        >>> tiles(0, 150)
        [(0, 64), (64, 128), (128, 150)]
    """
    size = max(SMALLEST_TILE, -(-(end - start) // MOST_TILES))
    return [(first, min(first + size, end)) for first in range(start, end, size)]


def clipped_table(table, length, beyond=0):
    """Returns the values of the distances 1 - n - beyond .. n + beyond, those beyond k repeated.

    Args:
        table: `(heads, dim, 2 k + 1)`; entry r belongs to distance r - k.
        length: number of tokens n, an integer or a scalar tensor.
        beyond: how many distances more, on either side.

    Returns:
        Tensor `(heads, dim, 2 (n + beyond))`. Without `beyond` its last entry, of distance n, is
        the one that `skew` never reads.
    """
    reach = ops.shape(table)[-1] // 2
    length = length + beyond
    distances = ops.arange(2 * length, dtype="int32") - (length - 1)
    return ops.take(table, ops.clip(distances, -reach, reach) + reach, axis=-1)


def skew(x, width):
    """Returns the matrices whose entry (i, u) is `x[i, rows - 1 + u - i]`.

    The memory of rows of one length is read again in rows that are one shorter, so that each
    starts one column later. Neither an index matrix nor a scatter in the backward pass is needed.

    Args:
        x: `(heads, batch, rows, width + rows)`; the last column is never read.
        width: columns of the answer, an integer or a scalar tensor.

    Returns:
        Tensor `(heads, batch, rows, width)`.
    """
    heads, batch, rows, columns = ops.shape(x)
    # `ops.slice`, because the gradient of x[..., a:b] is many times slower on TensorFlow.
    flat = ops.reshape(x, (heads, batch, rows * columns))
    flat = ops.slice(flat, (0, 0, 0), (heads, batch, rows * (columns - 1)))
    moved = ops.reshape(flat, (heads, batch, rows, columns - 1))
    return ops.slice(moved, (0, 0, 0, rows - 1), (heads, batch, rows, width))


def values_of_block(values, block):
    """Returns the matrices whose entry (i, j) is the value of distance j - i, for a block of rows.

    Equation:

        out[h, i, j] = values[h, n - 1 + j - i]

    Args:
        values: tensor `(heads, 2 n)`; column c belongs to distance c - (n - 1). The last one, of
            distance n, is never read.
        block: a `RowBlock`.

    Returns:
        Tensor `(heads, 1, rows, n)`.
    """
    heads = ops.shape(values)[0]
    first = block.length - block.end
    if not block.is_known and not block.is_whole:  # it may end beyond the sequence
        values = ops.pad(values, ((0, 0), (block.size, 0)))
        first = first + block.size
    columns = block.length + block.size
    near = ops.slice(values, (0, first), (heads, columns))
    rows = ops.broadcast_to(ops.reshape(near, (heads, 1, 1, -1)), (heads, 1, block.size, columns))
    return skew(rows, block.length)


def expand_distances(values, length):
    """Returns `(heads, length, length)`, the matrices of `values_of_block` for all rows."""
    return ops.squeeze(values_of_block(values, whole_sequence(length)), 1)


def expand_table(table, length):
    """Returns the matrices of a table of scalars by clipped distance.

    Args:
        table: tensor `(2 k + 1, heads, 1)`; row r belongs to distance r - k.
        length: number of tokens, an integer or a scalar tensor.

    Returns:
        Tensor `(heads, length, length)`.
    """
    return expand_distances(table_values(table, length), length)


def table_values(table, length):
    """Returns the scalars of such a table by distance, `(heads, 2 length)`, for the above."""
    return ops.squeeze(clipped_table(ops.transpose(table, (1, 2, 0)), length), 1)


def query_distance_products(query, table, block):
    """Returns `query_i . a_{clip(j - i)}` for the rows i of a block and all j.

    Args:
        query: the rows of the block, `(heads, batch, rows, dim)`.
        table: `(2 k + 1, heads or 1, dim)`; row r is the vector of distance r - k. Distances
            beyond -k and k have the vectors of -k and k. Or, in a loop over blocks, what
            `clipped_table` made of it with the rows of a block as `beyond`.
        block: a `RowBlock`.

    Returns:
        Tensor `(heads, batch, rows, length)`.
    """
    if block.is_known:
        table = ops.transpose(table, (1, 2, 0))  # (h, d, 2 k + 1)
        return _products(query, block.start, table, (0, block.length))
    if block.is_whole:
        table = clipped_table(ops.transpose(table, (1, 2, 0)), block.length)
        return skew(_times(query, table), block.length)
    heads, dim = ops.shape(table)[:2]
    first = block.length - block.end + block.size
    near = ops.slice(table, (0, 0, first), (heads, dim, block.length + block.size))
    return skew(_times(query, near), block.length)


def key_distance_products(key, table, block):
    """Returns `key_j . a_{clip(j - i)}` for the rows i of a block and all j.

    From the key's side a distance has the other sign, and keys are columns.

    Args:
        key: all keys, `(heads, batch, length, dim)`.
        table: as in the function above; in a loop it is flipped before it is clipped.
        block: a `RowBlock`.
    """
    if block.is_known:
        table = ops.transpose(ops.flip(table, axis=0), (1, 2, 0))
        products = _products(key, 0, table, (block.start, block.end))
        return ops.swapaxes(products, -1, -2)
    if block.is_whole:
        table = clipped_table(ops.transpose(ops.flip(table, axis=0), (1, 2, 0)), block.length)
        return ops.swapaxes(skew(_times(key, table), block.length), -1, -2)
    return _tiled_key_products(key, table, block)


def _tiled_key_products(key, table, block):
    """The same in tiles of as many keys as the block has rows, all of them in one product."""
    heads, batch, length, dim = ops.shape(key)
    size = block.size
    count = -(-length // size)
    key = ops.pad(key, ((0, 0), (0, 0), (0, count * size - length), (0, 0)))
    key = ops.transpose(ops.reshape(key, (heads, batch, count, size, dim)), (0, 2, 1, 3, 4))
    # by key minus query, tile t reaches the distances from start - t size - (size - 1) on
    lowest = block.start - (count - 1) * size - (size - 1)
    shape = (*ops.shape(table)[:2], (count + 1) * size)
    near = ops.slice(table, (0, 0, lowest + length - 1 + size), shape)
    near = ops.reshape(near, (*shape[:2], count + 1, size))
    near = ops.concatenate([near[:, :, :-1], near[:, :, 1:]], axis=-1)
    near = ops.transpose(ops.flip(near, axis=2), (0, 2, 1, 3))  # (h, tiles, d, 2 size)
    near = ops.broadcast_to(near, (heads, count, dim, 2 * size))
    products = ops.matmul(ops.reshape(key, (heads, count, batch * size, dim)), near)
    products = skew(ops.reshape(products, (heads, count * batch, size, 2 * size)), size)
    products = ops.reshape(products, (heads, count, batch, size, size))
    products = ops.reshape(
        ops.transpose(products, (0, 2, 4, 1, 3)), (heads, batch, size, count * size)
    )
    return ops.slice(products, (0, 0, 0, 0), (heads, batch, size, length))


def _products(vectors, first, table, others):
    """Returns `vectors_a . table_{clip(o - a)}` for rows a from `first` on and o of `others`."""
    reach = table.shape[-1] // 2
    begin, end = others
    rows = tiles(first, first + vectors.shape[2])
    pad = rows[0][1] - rows[0][0]  # the first tile is never smaller than another
    lowest, highest = table[:, :, :1], table[:, :, -1:]
    around = [ops.repeat(lowest, pad - 1, axis=-1), table, ops.repeat(highest, pad, axis=-1)]
    extended = ops.concatenate(around, axis=-1)
    parts = split_rows(vectors, rows)
    found = []
    for (row, row_end), part in zip(rows, parts, strict=True):
        left = min(max(row - reach, begin), end)  # what is near some row of the tile
        right = min(max(row_end + reach, begin), end)
        pieces = []
        if left > begin:
            pieces.append(_spread(_times(part, lowest), left - begin))
        if right > left:
            at = left - (row_end - 1) + reach + pad - 1  # of the lowest distance
            columns = right - left + row_end - row
            near = ops.slice(extended, (0, 0, at), (*extended.shape[:2], columns))
            pieces.append(skew(_times(part, near), right - left))
        if right < end:
            pieces.append(_spread(_times(part, highest), end - right))
        found.append(join(pieces, -1))
    return join(found, -2)


def split_rows(x, rows):
    """Returns the rows of each tile of a tensor `(heads, batch, rows, ...)`."""
    if len(rows) == 1:
        return [x]
    return ops.split(x, [start - rows[0][0] for start, _ in rows[1:]], axis=2)


def _times(vectors, table):
    """Returns the products of `(heads, batch, rows, dim)` and `(heads or 1, dim, columns)`.

    A head is one product of matrices, and heads that share a table are one too. TensorFlow 2.21
    broadcasts one matrix over a batch of shape (batch, 1) wrongly on CPUs, in oneDNN and for more
    than 16 rows: it returns what was in memory, and writes beyond its own. So do the gradients.
    """
    heads, batch, rows, dim = ops.shape(vectors)
    if table.shape[0] == 1:
        products = ops.matmul(ops.reshape(vectors, (-1, dim)), ops.squeeze(table, 0))
    else:
        products = ops.matmul(ops.reshape(vectors, (heads, batch * rows, dim)), table)
    return ops.reshape(products, (heads, batch, rows, ops.shape(products)[-1]))


def _spread(x, count):
    """Repeats the only entry of each row."""
    return ops.broadcast_to(x, (*ops.shape(x)[:-1], count))


def join(parts, axis):
    """Returns the concatenation; one part is it already."""
    return ops.concatenate(parts, axis=axis) if len(parts) > 1 else parts[0]
