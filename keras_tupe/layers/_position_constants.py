"""Position terms that an export has computed beforehand."""

import contextlib
import contextvars

_CONSTANTS = contextvars.ContextVar("position constants", default=None)


@contextlib.contextmanager
def position_constants(constants):
    """Inside, an encoder is traced for serving with what `constants` holds.

    Args:
        constants: dictionary, attention layer -> what its `position_logits` answers.
    """
    token = _CONSTANTS.set(tuple(constants.items()))
    try:
        yield
    finally:
        _CONSTANTS.reset(token)


def position_constant(layer):
    """Returns what a layer's `position_logits` would, computed before; `None` if it is not."""
    for owner, constant in _CONSTANTS.get() or ():
        if owner is layer:
            return constant
    return None


def is_served():
    """Returns whether an encoder is being traced for serving."""
    return _CONSTANTS.get() is not None
