"""Shape and dtype of a position bias."""

import keras

from keras_tupe.layers._precision import at_least_float32


def bias_spec(layer, hidden_states):
    """Returns the `KerasTensor` of a bias `(1, num_heads, length, length)`.

    Args:
        layer: the layer that makes it, with `num_heads`.
        hidden_states: `(batch, length, hidden_dim)`, symbolic.
    """
    length = hidden_states.shape[1]
    shape = (1, layer.num_heads, length, length)
    return keras.KerasTensor(shape, at_least_float32(layer.compute_dtype))
