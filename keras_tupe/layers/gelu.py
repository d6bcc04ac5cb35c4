"""Exact GELU from the error function."""

import math

import keras
from keras import ops

from keras_tupe.layers._exporting import conversion_format


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
