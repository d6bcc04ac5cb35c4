"""Expansion of one value per distance to a square matrix."""

from keras import ops

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
