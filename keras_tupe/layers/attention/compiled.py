"""Functions that XLA compiles inside of graphs that it does not compile."""

import functools

import keras

from keras_tupe.layers._exporting import conversion_format


def compiled(function):
    """Returns the function compiled by XLA on TensorFlow, and as it is on other backends.

    Keras compiles whole training steps only, and on CPU not by itself. Converters to
    other formats take nothing that XLA compiled.
    """

    @functools.cache
    def jitted():
        import tensorflow as tf

        return tf.function(function, jit_compile=True)

    @functools.wraps(function)
    def call(*args, **kwargs):
        is_tensorflow = keras.backend.backend() == "tensorflow" and conversion_format() is None
        return jitted()(*args, **kwargs) if is_tensorflow else function(*args, **kwargs)

    return call
