"""Steps on each element alone, compiled into one pass over memory while a trainer says so."""

import contextlib
import contextvars
import functools

import keras

from keras_tupe.layers._exporting import is_saved

_COMPILES = contextvars.ContextVar("whether steps become one pass", default=False)


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

    @functools.cache
    def compiled():
        import tensorflow as tf

        return tf.function(function, jit_compile=True, autograph=False)

    @functools.wraps(function)
    def call(*tensors):
        if _COMPILES.get() and all(tensor.shape.is_fully_defined() for tensor in tensors):
            return compiled()(*tensors)
        return function(*tensors)

    return call


def has_own_gradients(training):
    """Returns whether layers use gradients of their own: in training, on TensorFlow.

    JAX compiles whole steps. Outside training what TensorFlow differentiates itself stays: graphs
    to be served have only operations that converters know, and second derivatives exist.
    """
    return bool(training) and keras.backend.backend() == "tensorflow" and not is_saved()
