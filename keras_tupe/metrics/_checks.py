"""Checks of what is scored, with one wording."""

import numpy as np

from keras_tupe._finite import real_numbers


def numbers(values, name, smallest=1):
    """Returns a row of finite numbers, `(n,)`."""
    values = np.asarray(values)
    if values.ndim != 1 or len(values) < smallest:
        raise ValueError(
            f"`{name}` must be a row of numbers, one for each example, and hold at least "
            f"{smallest}. Received: {name} of shape {values.shape}"
        )
    return real_numbers(values, name, "a model that has diverged has no score", "biuf")


def pair(labels, predictions, smallest=1):
    """Returns labels and predictions, each a row of numbers and equally long."""
    labels = numbers(labels, "labels", smallest)
    predictions = numbers(predictions, "predictions", smallest)
    if len(labels) != len(predictions):
        raise ValueError(
            "There must be one prediction for each label. "
            f"Received: {len(labels)} labels, {len(predictions)} predictions"
        )
    return labels, predictions


def share(level):
    """Returns the confidence level of an interval, a number between 0 and 1."""
    is_number = isinstance(level, float | int | np.number) and not isinstance(level, bool)
    if not is_number or not 0 < level < 1:
        raise (ValueError if is_number else TypeError)(
            "`level` is the share of intervals that hold the true value and must be a number "
            f"between 0 and 1, as 0.95 for 95 %. Received: level={level!r}"
        )
    return float(level)
