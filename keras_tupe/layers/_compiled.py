"""Compilation of one function by XLA, for loops that are slow op by op."""

import functools

import keras

from keras_tupe.layers._conversion import conversion_format


def compiled(function):
    """Returns the function compiled by XLA on TensorFlow, and as it is on other backends.

    Keras compiles whole training steps only, and on CPU not by itself. This is the one place
    below the models that may import TensorFlow, and only when Keras runs on it. Converters to
    other formats take nothing that XLA compiled.
    """

    @functools.cache
    def jitted():
        import tensorflow as tf

        return tf.function(function, jit_compile=True)

    @functools.wraps(function)
    def call(*args):
        is_tensorflow = keras.backend.backend() == "tensorflow" and conversion_format() is None
        return jitted()(*args) if is_tensorflow else function(*args)

    return call
