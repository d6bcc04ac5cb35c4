"""Parts of what belongs to distances: of a few pairs, and of small distances alone."""

from keras import ops


def values_of_pairs(values, i, j):
    """Returns the values of the distances j - i, `(heads, 1, rows, columns)`.

    Args:
        values: tensor `(heads, 2 n)`, as in `distances.values_of_block`.
        i: positions of queries, int32 `(rows, 1)`.
        j: positions of keys, int32 `(1, columns)`.
    """
    length = ops.shape(values)[-1] // 2
    return ops.expand_dims(ops.take(values, j - i + (length - 1), axis=-1), 1)


def near_values(values, width):
    """Returns the values of the distances below `width` alone, `(heads, 2 width)`.

    Args:
        values: tensor `(heads, 2 n)`, as in `distances.values_of_block`.
        width: an integer.
    """
    heads, columns = ops.shape(values)
    values = ops.pad(values, ((0, 0), (width, width)))  # there may be fewer
    return ops.slice(values, (0, columns // 2), (heads, 2 * width))


def rows_of_pairs(table, i, j):
    """Returns the vectors of the distances j - i, `(heads or 1, rows, columns, dim)`.

    Args:
        table: `(2 k + 1, heads or 1, dim)`; distances beyond k have the vectors of k.
        i: positions of queries, int32 `(rows, 1)`.
        j: positions of keys, int32 `(1, columns)`.
    """
    reach = ops.shape(table)[0] // 2
    found = ops.take(table, ops.clip(j - i, -reach, reach) + reach, axis=0)
    return ops.transpose(found, (2, 0, 1, 3))


def near_table(table, width):
    """Returns a table of the distances below `width`; the table itself if it has no more.

    Args:
        table: `(2 k + 1, heads or 1, dim)`.
        width: an integer.
    """
    rows, reach = table.shape[0], width - 1
    if rows is not None and rows // 2 <= reach:
        return table
    if rows is not None:
        return ops.slice(table, (rows // 2 - reach, 0, 0), (2 * reach + 1, *ops.shape(table)[1:]))
    middle = ops.shape(table)[0] // 2
    distances = ops.arange(-reach, reach + 1, dtype="int32")
    return ops.take(table, ops.clip(distances, -middle, middle) + middle, axis=0)
