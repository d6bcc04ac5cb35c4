"""State while exporting: the format of a conversion, and position terms computed beforehand."""

import contextlib
import contextvars

import keras

from keras_tupe.layers._tracing import traced_for

_FORMAT = contextvars.ContextVar("format of a conversion", default=None)


@contextlib.contextmanager
def conversion_to(format):
    """Inside, functions that have a form for the converter of a format use it.

    Args:
        format: `"onnx"` or `"litert"`.
    """
    token = _FORMAT.set(format)
    try:
        yield
    finally:
        _FORMAT.reset(token)


def conversion_format():
    """Returns the format that a model is being converted to, or `None`."""
    return _FORMAT.get() or (traced_for() if traced_for() in ("onnx", "litert") else None)


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


_IS_SAVED = contextvars.ContextVar("whether a function is traced for a file", default=False)


@contextlib.contextmanager
def saved_function():
    """Inside, a function is traced that a file will hold, and that may be trained from there.

    A file holds no gradients of our own, so that those of TensorFlow's operations must do.
    """
    token = _IS_SAVED.set(True)
    try:
        yield
    finally:
        _IS_SAVED.reset(token)


def is_saved():
    """Returns whether a function is being traced for a file, to be served or trained there."""
    return _IS_SAVED.get() or is_served() or bool(conversion_format() or traced_for())


def is_served():
    """Returns whether an encoder is being traced for serving."""
    return _CONSTANTS.get() is not None


def has_own_gradients(training):
    """Returns whether layers use gradients of their own: in training, on TensorFlow.

    JAX compiles whole steps. Outside training what TensorFlow differentiates itself stays: graphs
    to be served have only operations that converters know, and second derivatives exist.
    """
    return bool(training) and keras.backend.backend() == "tensorflow" and not is_saved()
