"""Precision and recall of one class in one number."""

import operator

import numpy as np

from keras_tupe.metrics._checks import classes


def f1(labels, predictions, positive=1):
    """Returns the harmonic mean of precision and recall of a class.

    Equation:

        F1 = 2 TP / (2 TP + FP + FN)

    where TP counts the examples that have the class and are given it, FP those given it only, and
    FN those that have it only. Huang et al. report it for MRPC and QQP.

    Args:
        labels: class ids `(n,)`.
        predictions: class ids `(n,)`.
        positive: id of the class. The others count as one. Defaults to 1.

    Returns:
        Float in [0, 1]; 0 if no example has the class or is given it, where the formula says 0/0.
        Giving everyone the class yields 2 p / (1 + p), with p the share that has it.

    Raises:
        TypeError: if the ids are not numbers, or `positive` is not an integer.
        ValueError: if there are none, shapes differ, or an id is not a finite whole number.

    Example:
        >>> f1([1, 1, 1, 0], [1, 1, 0, 0])
        0.8
    """
    labels, predictions = classes(labels, predictions)
    try:
        positive = operator.index(positive)
    except TypeError:
        raise TypeError(
            f"`positive` must be a class id, an integer. Received: positive={positive!r}"
        ) from None
    has, given = labels == positive, predictions == positive
    both = int(np.count_nonzero(has & given))
    either = int(np.count_nonzero(has) + np.count_nonzero(given))  # 2 TP + FP + FN
    return 2 * both / either if either else 0.0
