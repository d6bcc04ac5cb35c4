"""The precision of attention logits: never below float32."""

import keras


def at_least_float32(dtype):
    """Returns `dtype` if it is wider than float32, else `"float32"`.

    Logits, position biases, masks and softmax are computed in this type under every
    precision policy, because float16 overflows at 65504 and bfloat16 keeps 8 bits.

    Example:
        >>> at_least_float32("bfloat16"), at_least_float32("float64")
        ('float32', 'float64')
    """
    return "float64" if keras.backend.standardize_dtype(dtype) == "float64" else "float32"
