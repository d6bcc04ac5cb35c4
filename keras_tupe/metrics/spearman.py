"""Spearman's correlation of ranks."""

import numpy as np

from keras_tupe.metrics._checks import pair
from keras_tupe.metrics.pearson import pearson


def spearman(labels, predictions):
    """Returns Spearman's coefficient: Pearson's of the ranks; equal numbers share their mean rank.

    Args:
        labels: numbers `(n,)`, n >= 2.
        predictions: numbers `(n,)`.

    Returns:
        Float in [-1, 1]; 1 if larger labels always have larger predictions. It is 0 if the
        predictions are all equal, or the labels are, where SciPy answers NaN.

    Raises:
        TypeError: if they are not real numbers.
        ValueError: if there are fewer than two, shapes differ or a number is not finite.

    Example:
        >>> round(spearman([0.0, 1.0, 5.0], [-3.0, 0.0, 900.0]), 6)
        1.0
    """
    labels, predictions = pair(labels, predictions, smallest=2)
    return pearson(_ranks(labels), _ranks(predictions))


def _ranks(values):
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)  # the highest rank, from 1, of each distinct number
    return (last - (counts - 1) / 2)[places]
