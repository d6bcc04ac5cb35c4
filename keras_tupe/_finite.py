"""Weights that are not numbers are refused where they come in."""

import contextlib
import contextvars

import numpy as np

_ALLOWED = contextvars.ContextVar("keras_tupe_non_finite_weights_allowed", default=False)


@contextlib.contextmanager
def allow_non_finite_weights():
    """Lets weights with NaN or infinity be loaded, to look at a training that went wrong.

    Without it presets, `.keras` and weights files, checkpoints and the checkpoints of other
    libraries that hold such a value are refused: a model would answer NaN to everything.

    Example:
        >>> with allow_non_finite_weights():
        ...     pass  # TupeBackbone.from_preset("broken")
    """
    token = _ALLOWED.set(True)
    try:
        yield
    finally:
        _ALLOWED.reset(token)


def check_finite(name, array):
    """Refuses an array with NaN or infinity, unless `allow_non_finite_weights` is in force.

    Args:
        name: what the array is, for the message.
        array: NumPy array of any type.

    Raises:
        ValueError: if it is refused.
    """
    if _ALLOWED.get() or not (array.dtype.kind in "fc" or array.dtype.name == "bfloat16"):
        return
    bad = array.size - np.count_nonzero(np.isfinite(array))
    if bad:
        raise ValueError(
            "Weights must be numbers: a training that failed leaves NaN. Use an earlier state, or "
            "load this one inside `with keras_tupe.allow_non_finite_weights():`. "
            f"Received: {bad} of {array.size} values of {name} are NaN or infinite"
        )
