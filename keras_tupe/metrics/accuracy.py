"""How often the class is right."""

import numpy as np

from keras_tupe.metrics._checks import classes


def accuracy(labels, predictions):
    """Returns the share of predictions that equal their label.

    Args:
        labels: class ids `(n,)`.
        predictions: class ids `(n,)`.

    Returns:
        Float in [0, 1]. Saying always the same class gives the share of that class.

    Raises:
        TypeError: if the ids are not numbers.
        ValueError: if there are none, shapes differ, or an id is not a finite whole number.

    Example:
        >>> accuracy([0, 1, 2, 2], [0, 1, 2, 0])
        0.75
    """
    labels, predictions = classes(labels, predictions)
    return float(np.mean(labels == predictions))
