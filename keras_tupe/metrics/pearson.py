"""Pearson's correlation, the score of STS-B."""

import numpy as np

from keras_tupe.metrics._checks import pair
from keras_tupe.metrics._scaled import scaled


def pearson(labels, predictions):
    """Returns Pearson's coefficient of linear correlation.

    Equation, with a and b the labels and predictions less their means:

        sum(a b) / sqrt(sum(a^2) sum(b^2))

    Args:
        labels: numbers `(n,)`, n >= 2.
        predictions: numbers `(n,)`.

    Returns:
        Float in [-1, 1]. It is 0 if the predictions are all equal, or the labels are, where the
        formula says 0/0 and SciPy answers NaN.

    Raises:
        TypeError: if they are not real numbers.
        ValueError: if there are fewer than two, shapes differ or a number is not finite.

    Example:
        >>> round(pearson([0.0, 1.0, 5.0], [10.0, 11.0, 15.0]), 6)
        1.0
        >>> pearson([0.0, 1.0, 5.0], [2.0, 2.0, 2.0])
        0.0
    """
    labels, predictions = pair(labels, predictions, smallest=2)
    labels, predictions = scaled(labels)[0], scaled(predictions)[0]
    if np.ptp(labels) == 0 or np.ptp(predictions) == 0:
        return 0.0
    correlation = np.dot(_direction(labels), _direction(predictions))
    return float(np.clip(correlation, -1, 1))


def _direction(values):
    centered = values - values.mean()
    return centered / np.sqrt(np.dot(centered, centered))
