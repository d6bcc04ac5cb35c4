"""What of a position correlation is a matter of distance: its rank, its Toeplitz part and share."""

import numpy as np

from keras_tupe.analysis._checks import square_matrices


def correlation_rank(matrices):
    """Returns the numerical rank of each head's position correlation.

    A correlation (P U^Q)(P U^K)^T has at most the rank d, the size of a head, however long the
    sequence is; a table with one value per distance may have full rank.

    Equation (that of `numpy.linalg.matrix_rank`, with the eps of the dtype that is given):

        rank = number of singular values > largest singular value * n * eps

    Args:
        matrices: finite real numbers `(heads, n, n)`, for example of `position_logits`.

    Returns:
        Integers `(heads,)`.

    Example:
        >>> correlation_rank(np.ones((2, 5, 5)))
        array([1, 1])
    """
    matrices = square_matrices(matrices)
    is_float = matrices.dtype.kind == "f"
    epsilon = np.finfo(matrices.dtype if is_float else "float64").eps
    singular = np.linalg.svd(matrices.astype("float64"), compute_uv=False)  # (h, n), falling
    tolerance = singular[:, :1] * matrices.shape[1] * float(epsilon)
    return np.count_nonzero(singular > tolerance, axis=-1)


def toeplitz_part(matrices):
    """Returns the Toeplitz matrices nearest to the given ones.

    Equation (orthogonal projection in the Frobenius norm):

        out[h, i, j] = mean of matrices[h, a, b] over all a, b with b - a = j - i

    Args:
        matrices: `(heads, n, n)`.

    Returns:
        float64 `(heads, n, n)`.

    Example:
        >>> toeplitz_part(np.array([[[1.0, 2.0], [4.0, 3.0]]]))
        array([[[2., 2.], [4., 2.]]])
    """
    matrices = square_matrices(matrices).astype("float64")
    return _of_distance(_diagonal_sums(matrices) / _diagonal_sizes(matrices.shape[1]))


def toeplitz_energy(matrices):
    """Returns the share of each matrix that a function of distance explains.

    Softmax ignores a constant added to a row, and a large one hides everything else: any
    matrix plus 1000 is nearly Toeplitz. So constants of rows are left out.

    Equation, with C(B) = B minus the mean of each row, in the Frobenius norm:

        1 - min over Toeplitz T of |C(B) - C(T)|^2 / |C(B)|^2

    It is 1 exactly for a Toeplitz matrix plus a constant per row. The best T solves a linear system
    in its 2n - 1 values. A matrix with nothing to explain has the share 1.

    Args:
        matrices: `(heads, n, n)`.

    Returns:
        float64 `(heads,)`, each in [0, 1]. A random matrix has, on average, the share of the
        degrees of freedom, not 0.

    Example:
        >>> position = np.arange(6)
        >>> slope = -abs(position[:, None] - position) + 100.0 * position[:, None]
        >>> toeplitz_energy(slope[None]).round(6)
        array([1.])
    """
    matrices = square_matrices(matrices).astype("float64")
    centered = matrices - matrices.mean(axis=-1, keepdims=True)
    values, sums = _nearest_distance_values(centered)
    rounding = (matrices**2).sum(axis=(1, 2)) * (len(matrices[0]) * np.finfo("float64").eps) ** 2
    part, whole = (values * sums).sum(axis=-1), (centered**2).sum(axis=(1, 2))
    nothing = whole <= rounding  # what it leaves of row constants
    return np.where(nothing, 1.0, np.clip(part / np.where(nothing, 1.0, whole), 0, 1))


def remove_row_constants(matrices):
    """Returns the position logits that, of all with the same softmax, are nearest to Toeplitz.

    Each row of logits may be moved by a constant. Without the means of its rows a function of
    distance no longer looks like one, since those at the ends of a sequence differ. So the
    constants are removed that distance does not explain.

    Equation:

        out = B - r 1^T,  r and a Toeplitz T from min |B - r 1^T - T|^2,  mean(out) = 0

    Args:
        matrices: `(heads, n, n)`.

    Returns:
        float64 `(heads, n, n)`: for a Toeplitz matrix plus a constant per row, that
        Toeplitz matrix without its mean.

    Example:
        >>> remove_row_constants(np.array([[[7.0, 8.0], [20.0, 23.0]]])).round(9)
        array([[[ 0.5,  1.5],
                [-2.5,  0.5]]])
    """
    matrices = square_matrices(matrices).astype("float64")
    centered = matrices - matrices.mean(axis=-1, keepdims=True)
    fitted = _of_distance(_nearest_distance_values(centered)[0])
    moved = centered + fitted.mean(axis=-1, keepdims=True)
    return moved - moved.mean(axis=(1, 2), keepdims=True)


def _distances(length):
    return np.arange(1 - length, length)


def _diagonal_sizes(length):
    return length - np.abs(_distances(length))


def _diagonal_sums(matrices):
    """Returns the sums over the diagonals, `(heads, 2n - 1)`, from distance 1 - n on."""
    diagonals = _distances(matrices.shape[1])
    return np.stack([np.trace(matrices, d, axis1=1, axis2=2) for d in diagonals], axis=1)


def _of_distance(values):
    """Returns the Toeplitz matrices of values by distance, `(heads, 2n - 1)`."""
    place = np.arange((values.shape[1] + 1) // 2)
    return values[:, place[None, :] - place[:, None] + len(place) - 1]


def _nearest_distance_values(centered):
    """Returns the t of min |C - C(T)|^2 for rows without their mean, and the sums <C, T_d>."""
    sums, length = _diagonal_sums(centered), centered.shape[1]
    ends = _distances(length)[:, None] + np.arange(length)
    in_row = ((ends >= 0) & (ends < length)).astype("float64")  # whether distance d is in row i
    # <C(T_c), C(T_d)> over distances c, d, plus 1 to make it regular
    products = np.diag(_diagonal_sizes(length)) - in_row @ in_row.T / length + 1.0
    return np.linalg.solve(products, sums.T).T, sums
