"""How much of a correlation is a matter of distance alone."""

import numpy as np

from keras_tupe.analysis._checks import square_matrices
from keras_tupe.analysis.toeplitz_part import diagonal_sizes, diagonal_sums, toeplitz_part


def toeplitz_energy(matrices, row_constants="ignored"):
    """Returns the share of each matrix that a function of distance explains.

    Softmax ignores a constant added to a row, and a large one hides everything else: any
    matrix plus 1000 is nearly Toeplitz. So constants of rows are left out unless told otherwise.

    Equation, with C(B) = B minus the mean of each row:

        "ignored":  1 - min over Toeplitz T of |C(B) - C(T)|^2 / |C(B)|^2
        "counted":  |toeplitz_part(B)|^2 / |B|^2

    in the Frobenius norm. The first is 1 exactly for a Toeplitz matrix plus a constant per row. The
    best T solves a linear system in its 2n - 1 values, whose kernel, the constant matrices, does
    not matter. A matrix with nothing to explain has the share 1.

    Args:
        matrices: `(heads, n, n)`.
        row_constants: `"ignored"` or `"counted"`. Defaults to `"ignored"`.

    Returns:
        float64 `(heads,)`, each in [0, 1].

    Raises:
        TypeError: if the entries are not real numbers.
        ValueError: if the shape is another one, an entry is not finite, or `row_constants` is
            neither of the two words.

    Notes:
        A random matrix does not have the share 0 but, on average, that of the degrees of freedom:
        (2n - 1) / n^2 when rows are counted.

    Example:
        >>> position = np.arange(6)
        >>> slope = -abs(position[:, None] - position) + 100.0 * position[:, None]
        >>> toeplitz_energy(slope[None]).round(6)
        array([1.])
    """
    if row_constants not in ("ignored", "counted"):
        raise ValueError(
            "`row_constants` says what becomes of a constant added to a row. Expected 'ignored' or "
            f"'counted'. Received: row_constants={row_constants!r}"
        )
    matrices = square_matrices(matrices).astype("float64")
    given = _squares(matrices)
    if row_constants == "counted":
        return _share(_squares(toeplitz_part(matrices)), given)
    centered = matrices - matrices.mean(axis=-1, keepdims=True)
    left = _squares(centered)
    # What rounding leaves of a matrix of row constants is no signal.
    left[left <= given * (matrices.shape[1] * np.finfo("float64").eps) ** 2] = 0
    values, sums = nearest_distance_values(centered)
    return _share((values * sums).sum(-1), left)


def nearest_distance_values(centered):
    """Returns the t of min |C - C(T)|^2 for rows without their mean, and the sums <C, T_d>."""
    sums = diagonal_sums(centered)
    return np.linalg.solve(_normal_equations(centered.shape[1]), sums.T).T, sums


def _squares(matrices):
    return (matrices**2).sum(axis=(1, 2))


def _share(part, whole):
    nothing = whole == 0
    return np.where(nothing, 1.0, np.clip(part / np.where(nothing, 1.0, whole), 0, 1))


def _normal_equations(length):
    """Returns the matrix of <C(T_c), C(T_d)> over distances c, d, plus 1 to make it regular."""
    count = 2 * length - 1
    in_row = np.zeros((count, length))  # whether distance d occurs in row i
    for i in range(length):
        in_row[length - 1 - i : count - i, i] = 1
    return np.diag(diagonal_sizes(length)) - in_row @ in_row.T / length + 1.0
