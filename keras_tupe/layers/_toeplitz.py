"""Expansion of one value per distance to a square matrix."""

from keras import ops

from keras_tupe.layers._clipped_table import clipped_table
from keras_tupe.layers._skew import skew


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
