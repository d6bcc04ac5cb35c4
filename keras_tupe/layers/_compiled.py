"""Functions that XLA compiles inside of graphs that it does not compile."""

import contextlib
import contextvars
import functools

import keras

from keras_tupe.layers._exporting import conversion_format

_COMPILES = contextvars.ContextVar("whether steps become one pass", default=False)


def compiled(function):
    """Decorator: XLA compiles the function on TensorFlow; on other backends it runs as it is.

    Keras compiles whole training steps only, and on CPU not by itself. Converters to
    other formats take nothing that XLA compiled.
    """

    def is_compiled(args):
        return keras.backend.backend() == "tensorflow" and conversion_format() is None

    return _compiled_if(is_compiled, function)


@contextlib.contextmanager
def one_pass_steps(compiles=True):
    """Inside, what `one_pass` decorates is compiled. On TensorFlow; elsewhere nothing changes.

    TensorFlow's own operations on CPUs each read and write all elements, about 1 ns each; a GELU
    with its gradient is a dozen of them. Compiled by XLA they are one pass each way, while products
    of matrices stay with oneDNN, which is faster at them than XLA.

    Args:
        compiles: whether; `False` for a graph that XLA compiles as a whole, or not at all.
    """
    token = _COMPILES.set(compiles)
    try:
        yield
    finally:
        _COMPILES.reset(token)


def one_pass(function):
    """Decorator of a pure function of tensors, elementwise up to broadcasting.

    The function runs as it is where nothing says that it be compiled, and where a shape is not
    known when the graph is made: XLA would compile it again for every new shape.
    """

    def is_compiled(tensors):
        return _COMPILES.get() and all(tensor.shape.is_fully_defined() for tensor in tensors)

    return _compiled_if(is_compiled, function)


def _compiled_if(is_compiled, function):
    """Returns the function, compiled at each call whose arguments `is_compiled` is true of."""

    @functools.cache
    def by_xla(unknown):
        import tensorflow as tf

        return tf.function(function, jit_compile=True, autograph=False)

    @functools.wraps(function)
    def call(*args, **kwargs):
        return (by_xla(_unknown(args)) if is_compiled(args) else function)(*args, **kwargs)

    return call


def _unknown(args):
    """Returns the shapes of the arguments if any is not known, else `None`.

    TensorFlow would take the graph that it made for an unknown length for known ones as well, and
    what follows would not know theirs.
    """
    shapes = [getattr(x, "shape", ()) for x in args]
    known = all(None not in tuple(shape) for shape in shapes)
    return None if known else tuple(map(tuple, shapes))
