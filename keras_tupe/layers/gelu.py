"""GELU, exact from the error function, and its approximation by tanh."""

import functools
import math

import keras
from keras import ops

from keras_tupe._keywords import did_you_mean
from keras_tupe.layers._parts import at_least_float32
from keras_tupe.layers._tracing import fused


@keras.saving.register_keras_serializable(package="keras_tupe")
def gelu(x):
    """Gaussian error linear unit, the exact form.

    Equation (Hendrycks and Gimpel 2016):

        gelu(x) = x * (1 + erf(x / sqrt(2))) / 2

    Differs from `keras.activations.gelu(approximate=False)` in the op it is made of: TensorFlow
    writes that one with `erfc`, which ONNX and LiteRT converters do not know. Any shape of `x`.

    Example:
        >>> round(float(gelu(1.0)), 4)
        0.8413
    """
    # LiteRT has no erf, and takes the whole in this order for its own GELU
    return 0.5 * x * (1.0 + ops.erf(x / math.sqrt(2.0)))


@keras.saving.register_keras_serializable(package="keras_tupe")
def gelu_approximate(x):
    """Gaussian error linear unit by tanh, as in GPT-2: at most 0.0005 away from `gelu`.

    Equation (Hendrycks and Gimpel 2016, section 2):

        gelu(x) = x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))) / 2

    Any shape of `x`.

    Example:
        >>> round(float(gelu_approximate(1.0)), 4)
        0.8412
    """
    inner = math.sqrt(2.0 / math.pi) * (x + 0.044715 * (x * x * x))
    return x * ((ops.tanh(inner) + 1.0) * 0.5)


ACTIVATIONS = {"gelu": gelu, "gelu_approximate": gelu_approximate}


def activation_of(name):
    """Returns the activation of a name."""
    if not isinstance(name, str) or name not in ACTIVATIONS:
        raise ValueError(
            f"`activation` must be one of {list(ACTIVATIONS)}.{did_you_mean(name, ACTIVATIONS)} "
            f"Received: activation={name!r}"
        )
    return ACTIVATIONS[name]


def trained_activation(activation):
    """Returns a GELU that keeps x alone for its gradient, on TensorFlow; others as they are."""
    return _again(activation) if activation in ACTIVATIONS.values() else activation


@functools.cache
def _again(function):
    def wide(x):
        return ops.cast(function(ops.cast(x, at_least_float32(x.dtype))), x.dtype)

    return fused(lambda x: keras.remat(wide)(x))
