"""Exact GELU from the error function."""

import math

import keras
from keras import ops

from keras_tupe.layers._compiled import one_pass
from keras_tupe.layers._exporting import conversion_format
from keras_tupe.layers._parts import at_least_float32


@keras.saving.register_keras_serializable(package="keras_tupe")
def gelu(x):
    """Gaussian error linear unit, the exact form.

    Equation (Hendrycks and Gimpel 2016):

        gelu(x) = x * (1 + erf(x / sqrt(2))) / 2

    Differs from `keras.activations.gelu(approximate=False)` in the op it is made of: TensorFlow
    writes that one with `erfc`, which ONNX and LiteRT converters do not know.

    Args:
        x: tensor of any shape.

    Returns:
        Tensor of the same shape and dtype.

    Example:
        >>> round(float(gelu(1.0)), 4)
        0.8413
    """
    if conversion_format() is not None:  # LiteRT has no erf, and takes this one for its own GELU
        return 0.5 * x * (1.0 + ops.erf(x / math.sqrt(2.0)))
    return x * ((ops.erf(x * math.sqrt(0.5)) + 1.0) * 0.5)  # in an order that TensorFlow fuses


def trained_gelu(x):
    """Returns `gelu(x)` with a gradient of its own, on TensorFlow.

    Equation, with phi and Phi the density and distribution function of a standard normal:

        d gelu(x) / dx = Phi(x) + x phi(x)

    Kept for the backward pass is x alone, and everything is computed in at least float32. There is
    no second derivative.
    """
    import tensorflow as tf

    @tf.custom_gradient
    def with_gradient(x):
        return _trained(x), lambda upstream: _slope(x, upstream)

    return with_gradient(x)


@one_pass
def _trained(x):
    wide = ops.cast(x, at_least_float32(x.dtype))
    return ops.cast(wide * _below(wide), x.dtype)


@one_pass
def _slope(x, upstream):
    wide = ops.cast(x, at_least_float32(x.dtype))
    density = ops.exp(ops.square(wide) * -0.5) * (1.0 / math.sqrt(2.0 * math.pi))
    slope = _below(wide) + wide * density
    return ops.cast(ops.cast(upstream, wide.dtype) * slope, x.dtype)


def _below(x):
    """Returns the probability that a standard normal is below x."""
    return (ops.erf(x * math.sqrt(0.5)) + 1.0) * 0.5
