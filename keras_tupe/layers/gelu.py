"""GELU, exact from the error function, and its approximation by tanh."""

import math

import keras
from keras import ops

from keras_tupe._keywords import did_you_mean
from keras_tupe.layers._compiled import one_pass
from keras_tupe.layers._exporting import conversion_format
from keras_tupe.layers._parts import at_least_float32

_SCALE, _CUBIC = math.sqrt(2.0 / math.pi), 0.044715  # of the approximation


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


@keras.saving.register_keras_serializable(package="keras_tupe")
def gelu_approximate(x):
    """Gaussian error linear unit, the form with tanh, as GPT-2 has it.

    Equation (Hendrycks and Gimpel 2016, section 2):

        gelu(x) = x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))) / 2

    Differs from `gelu` by at most 0.0005.

    Args:
        x: tensor of any shape.

    Returns:
        Tensor of the same shape and dtype.

    Example:
        >>> round(float(gelu_approximate(1.0)), 4)
        0.8412
    """
    return x * ((ops.tanh(_inner(x)) + 1.0) * 0.5)


ACTIVATIONS = {"gelu": gelu, "gelu_approximate": gelu_approximate}


def activation_of(name):
    """Returns the activation of a name.

    Raises:
        ValueError: if there is none, with the nearest one.
    """
    if not isinstance(name, str) or name not in ACTIVATIONS:
        raise ValueError(
            f"`activation` must be one of {list(ACTIVATIONS)}.{did_you_mean(name, ACTIVATIONS)} "
            f"Received: activation={name!r}"
        )
    return ACTIVATIONS[name]


def trained_activation(activation):
    """Returns a GELU with a gradient of its own, on TensorFlow; other functions as they are.

    Equations, with phi and Phi the density and distribution function of a standard normal, and
    t = tanh(u(x)) of the approximation:

        d gelu(x) / dx             = Phi(x) + x phi(x)
        d gelu_approximate(x) / dx = (1 + t) / 2 + x (1 - t^2) / 2 du/dx

    Kept for the backward pass is x alone, and everything is computed in at least float32. There is
    no second derivative.
    """
    if activation not in _TRAINED:
        return activation
    value, slope = _TRAINED[activation]

    def trained(x):
        import tensorflow as tf

        @tf.custom_gradient
        def with_gradient(x):
            return value(x), lambda upstream: slope(x, upstream)

        return with_gradient(x)

    return trained


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


@one_pass
def _trained_approximate(x):
    return ops.cast(gelu_approximate(ops.cast(x, at_least_float32(x.dtype))), x.dtype)


@one_pass
def _slope_approximate(x, upstream):
    wide = ops.cast(x, at_least_float32(x.dtype))
    tanh = ops.tanh(_inner(wide))
    inner_slope = _SCALE * (1.0 + 3.0 * _CUBIC * ops.square(wide))
    slope = (tanh + 1.0) * 0.5 + wide * (1.0 - ops.square(tanh)) * (0.5 * inner_slope)
    return ops.cast(ops.cast(upstream, wide.dtype) * slope, x.dtype)


_TRAINED = {
    gelu: (_trained, _slope),
    gelu_approximate: (_trained_approximate, _slope_approximate),
}


def _below(x):
    """Returns the probability that a standard normal is below x."""
    return (ops.erf(x * math.sqrt(0.5)) + 1.0) * 0.5


def _inner(x):
    """Returns u(x) = sqrt(2 / pi) * (x + 0.044715 x^3)."""
    return _SCALE * (x + _CUBIC * (x * x * x))
