"""Matthews' correlation, the score of CoLA."""

import math

import numpy as np

from keras_tupe.metrics._checks import classes


def matthews(labels, predictions):
    """Returns Matthews' correlation coefficient of two or more classes.

    Equation (Gorodkin 2004; with two classes, that of Matthews 1975), for n examples of which c
    are right, t_k have class k and p_k are given it:

        (n c - sum_k t_k p_k) / sqrt((n^2 - sum_k t_k^2) (n^2 - sum_k p_k^2))

    Args:
        labels: class ids `(n,)`.
        predictions: class ids `(n,)`.

    Returns:
        Float in [-1, 1]; 1 if all are right, about 0 for guesses. It is 0 where the formula says
        0/0: predictions all of one class, or labels all of one class.

    Raises:
        TypeError: if the ids are not numbers.
        ValueError: if there are none, shapes differ, or an id is not a finite whole number.

    Example:
        >>> matthews([1, 1, 0, 0], [1, 1, 0, 0])
        1.0
        >>> matthews([1, 1, 1, 0], [1, 1, 1, 1])
        0.0

    References:
        Matthews. Comparison of the predicted and observed secondary structure of T4 phage
        lysozyme. Biochimica et Biophysica Acta 405, 1975.
        Gorodkin. Comparing two K-category assignments by a K-category correlation coefficient.
        Computational Biology and Chemistry 28, 2004.
    """
    labels, predictions = classes(labels, predictions)
    names, ids = np.unique(np.concatenate([labels, predictions]), return_inverse=True)
    # Python's integers, since the fourth power of n does not fit into 64 bits.
    has = np.bincount(ids[: len(labels)], minlength=len(names)).tolist()
    given = np.bincount(ids[len(labels) :], minlength=len(names)).tolist()
    count, right = len(labels), int(np.count_nonzero(labels == predictions))
    spread = (count**2 - _dot(has, has)) * (count**2 - _dot(given, given))
    if spread == 0:
        return 0.0
    return max(-1.0, min(1.0, (count * right - _dot(has, given)) / math.sqrt(spread)))


def _dot(first, second):
    return sum(a * b for a, b in zip(first, second, strict=True))
