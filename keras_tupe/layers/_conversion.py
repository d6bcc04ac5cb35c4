"""Whether a model is being converted to another format, whose converter knows fewer ops."""

import contextlib
import contextvars

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
    return _FORMAT.get()
