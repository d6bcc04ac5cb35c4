"""The rank of position correlations."""

import numpy as np

from keras_tupe.analysis._checks import square_matrices


def correlation_rank(matrices):
    """Returns the numerical rank of each head's position correlation.

    A correlation (P U^Q)(P U^K)^T has at most the rank d, the size of a head, however long the
    sequence is; a table with one value per distance may have full rank.

    Equation:

        rank = number of singular values > largest singular value * n * eps

    which is the rule of `numpy.linalg.matrix_rank`, with eps that of the dtype in which the
    matrices came, since it bounds their rounding errors. Singular values are in float64.

    Args:
        matrices: `(heads, n, n)`, for example of `position_logits`.

    Returns:
        Integers `(heads,)`.

    Raises:
        TypeError: if the entries are not real numbers.
        ValueError: if the shape is another one or an entry is not finite.

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
