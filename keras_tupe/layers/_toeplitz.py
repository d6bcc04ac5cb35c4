"""Expansion of one value per distance to a square matrix."""

from keras import ops


def expand_distances(values, length):
    """Returns the matrices whose entry (i, j) is the value of distance j - i.

    Equation:

        out[h, i, j] = values[h, n - 1 + j - i]

    Each row of the answer is the same vector shifted by one. Repeating the vector in rows of
    width 2n and reading the memory again in rows of width 2n - 1 makes exactly that shift,
    so neither an index matrix nor a scatter in the backward pass is needed.

    Args:
        values: tensor `(heads, 2 * length - 1)`; column c belongs to distance c - (n - 1).
        length: number of tokens n, an integer or a scalar tensor.

    Returns:
        Tensor `(heads, length, length)`.
    """
    heads = values.shape[0]
    rows = ops.pad(values, ((0, 0), (0, 1)))  # (h, 2n)
    rows = ops.broadcast_to(ops.expand_dims(rows, 1), (heads, length, 2 * length))
    flat = ops.reshape(rows, (heads, 2 * length * length))
    skewed = ops.reshape(
        flat[:, : length * (2 * length - 1)], (heads, length, 2 * length - 1)
    )  # row i starts i places later
    return skewed[:, :, length - 1 :]  # (h, n, n)
