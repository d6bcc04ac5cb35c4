"""Weights that are not numbers are refused where they come in."""

import numpy as np


def check_finite(name, array):
    """Refuses an array with NaN or infinity; `name` is what it is, for the message."""
    if not (array.dtype.kind in "fc" or array.dtype.name == "bfloat16"):
        return
    bad = array.size - np.count_nonzero(np.isfinite(array))
    if bad:
        raise ValueError(
            "Weights must be numbers: a training that failed leaves NaN. Use an earlier state. "
            f"Received: {bad} of {array.size} values of {name} are NaN or infinite"
        )
