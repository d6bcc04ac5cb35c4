"""Checks of what is scored, with one wording."""

import numpy as np


def numbers(values, name, smallest=1):
    """Returns a row of numbers as float64 `(n,)`."""
    return _row(values, name, smallest).astype("float64")


def pair(labels, predictions, smallest=1):
    """Returns labels and predictions, each float64 `(n,)`, checked as by `numbers`."""
    labels, predictions = _equally_long(labels, predictions, smallest)
    return labels.astype("float64"), predictions.astype("float64")


def classes(labels, predictions):
    """Returns labels and predictions, each `(n,)` of whole numbers, after checking them."""
    labels, predictions = _equally_long(labels, predictions, 1)
    for values, name in ((labels, "labels"), (predictions, "predictions")):
        fractions = values != np.floor(values) if values.dtype.kind == "f" else np.zeros(1, bool)
        if fractions.any():
            raise ValueError(
                f"`{name}` must hold class ids, which are whole numbers; take the argmax of "
                f"logits or probabilities first. Received: {name} with the entry "
                f"{float(values[fractions][0])!r}"
            )
    return labels, predictions


def share(level):
    """Returns the confidence level of an interval, after checking that it is between 0 and 1."""
    if isinstance(level, bool) or not isinstance(level, (float, int, np.floating, np.integer)):
        raise TypeError(f"`level` must be a number between 0 and 1. Received: level={level!r}")
    if not 0 < level < 1:
        raise ValueError(
            "`level` is the share of intervals that hold the true value and must be between 0 and "
            f"1, as 0.95 for 95 %. Received: level={level!r}"
        )
    return float(level)


def _equally_long(labels, predictions, smallest):
    labels = _row(labels, "labels", smallest)
    predictions = _row(predictions, "predictions", smallest)
    if len(labels) != len(predictions):
        raise ValueError(
            "There must be one prediction for each label. "
            f"Received: {len(labels)} labels, {len(predictions)} predictions"
        )
    return labels, predictions


def _row(values, name, smallest):
    try:
        values = np.asarray(values)
    except ValueError as error:
        raise ValueError(f"`{name}` must be a row of numbers. Received: {error}") from error
    if values.ndim == 1 and len(values) < smallest:
        few = "at least one number" if smallest == 1 else f"at least {smallest} numbers"
        raise ValueError(f"`{name}` must hold {few}. Received: {name} of shape {values.shape}")
    if values.dtype.kind not in "biuf":
        raise TypeError(
            f"`{name}` must hold real numbers. Received: {name} of dtype {values.dtype}"
        )
    if values.ndim != 1:
        raise ValueError(
            f"`{name}` must be a row of numbers, one for each example. "
            f"Received: {name} of shape {values.shape}"
        )
    if not np.isfinite(values).all():
        raise ValueError(
            f"`{name}` must be finite; a model that has diverged has no score. Received: {name} "
            f"with {np.count_nonzero(~np.isfinite(values))} values that are NaN or infinite"
        )
    return values
