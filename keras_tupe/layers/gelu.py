"""GELU, exact from the error function, and its approximation by tanh."""

import math

import keras
from keras import ops

from keras_tupe._keywords import did_you_mean
from keras_tupe.layers._parts import at_least_float32
from keras_tupe.layers._tracing import fused, traced_for


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
    if traced_for() in ("onnx", "litert"):  # LiteRT has no erf, and takes this one for its own GELU
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
    inner = math.sqrt(2.0 / math.pi) * (x + 0.044715 * (x * x * x))
    return x * ((ops.tanh(inner) + 1.0) * 0.5)


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
    """Returns a GELU that keeps x alone for its gradient, on TensorFlow; others as they are."""
    return _TRAINED.get(activation, activation)


def _again(function):
    @fused
    def trained(x):
        def wide(x):
            return ops.cast(function(ops.cast(x, at_least_float32(x.dtype))), x.dtype)

        return keras.remat(wide)(x)

    return trained


_TRAINED = {function: _again(function) for function in ACTIVATIONS.values()}
