"""The part of a matrix that depends on distance alone."""

import numpy as np

from keras_tupe.analysis._checks import square_matrices


def toeplitz_part(matrices):
    """Returns the Toeplitz matrices nearest to the given ones.

    Equation (orthogonal projection in the Frobenius norm):

        out[h, i, j] = mean of matrices[h, a, b] over all a, b with b - a = j - i

    Args:
        matrices: `(heads, n, n)`.

    Returns:
        float64 `(heads, n, n)`.

    Raises:
        TypeError: if the entries are not real numbers.
        ValueError: if the shape is another one or an entry is not finite.

    Example:
        >>> toeplitz_part(np.array([[[1.0, 2.0], [4.0, 3.0]]]))
        array([[[2., 2.], [4., 2.]]])
    """
    matrices = square_matrices(matrices).astype("float64")
    length = matrices.shape[1]
    means = diagonal_sums(matrices) / diagonal_sizes(length)
    return means[:, distance_rows(length)]


def distance_rows(length):
    """Returns integers `(n, n)`: j - i + n - 1, the row of distance j - i in a table."""
    place = np.arange(length)
    return place[None, :] - place[:, None] + length - 1


def diagonal_sizes(length):
    """Returns how many entries each of the 2n - 1 diagonals has."""
    return length - np.abs(np.arange(1 - length, length))


def diagonal_sums(matrices):
    """Returns the sums over the diagonals, `(heads, 2n - 1)`, from distance 1 - n on."""
    heads, length, _ = matrices.shape
    sums = np.zeros((heads, 2 * length - 1))
    for i in range(length):
        sums[:, length - 1 - i : 2 * length - 1 - i] += matrices[:, i]
    return sums
