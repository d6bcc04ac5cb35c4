"""Logits without the constant of each row, which softmax does not see and the eye does."""

from keras_tupe.analysis._checks import square_matrices
from keras_tupe.analysis.toeplitz_energy import nearest_distance_values
from keras_tupe.analysis.toeplitz_part import distance_rows


def remove_row_constants(matrices):
    """Returns the position logits that, of all with the same softmax, are nearest to Toeplitz.

    Each row of logits may be moved by a constant. Without its mean a row looks tidy, but a function
    of distance no longer looks like one: at the left and at the right end of a sequence the
    means differ. So the constants are removed that distance does not explain.

    Equation:

        out = B - r 1^T,  r and a Toeplitz T from min |B - r 1^T - T|^2,  mean(out) = 0

    Args:
        matrices: `(heads, n, n)`.

    Returns:
        float64 `(heads, n, n)`: for a Toeplitz matrix plus a constant per row, that
        Toeplitz matrix without its mean.

    Raises:
        TypeError: if the entries are not real numbers.
        ValueError: if the shape is another one or an entry is not finite.

    Example:
        >>> remove_row_constants(np.array([[[7.0, 8.0], [20.0, 23.0]]])).round(9)
        array([[[ 0.5,  1.5],
                [-2.5,  0.5]]])
    """
    matrices = square_matrices(matrices).astype("float64")
    centered = matrices - matrices.mean(axis=-1, keepdims=True)
    values, _ = nearest_distance_values(centered)
    fitted = values[:, distance_rows(matrices.shape[1])]
    moved = centered + fitted.mean(axis=-1, keepdims=True)
    return moved - moved.mean(axis=(1, 2), keepdims=True)
