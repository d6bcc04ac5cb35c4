"""Products of queries and keys, with a bias, whose gradient takes no pass of its own."""

import keras
from keras import ops

from keras_tupe.layers._exporting import is_saved


def scaled_products(query, key, scale, bias=None):
    """Returns `scale * query_i . key_j + bias_ij`.

    TensorFlow on CPUs makes one op of product, scale and a bias that all sequences share. Its own
    gradient would multiply all logits by the scale again.

    Args:
        query: `(heads, batch, rows, dim)`.
        key: `(heads, batch, length, dim)`.
        scale: a number.
        bias: `(heads or 1, batch or 1, rows, length)`, or `None`.

    Returns:
        Tensor `(heads, batch, rows, length)`.
    """
    if bias is None:
        return ops.matmul(query * scale, ops.swapaxes(key, -1, -2))
    if bias.shape[0] == 1 and query.shape[0] != 1:
        # TensorFlow 2.21 on CPUs takes up to 200 times longer for a bias that heads and sequences
        # share, as a mask is, than for one that sequences alone share
        bias = ops.broadcast_to(bias, (ops.shape(query)[0], *ops.shape(bias)[1:]))
    if keras.backend.backend() != "tensorflow" or is_saved() or bias.shape[1] is None:
        return ops.matmul(query * scale, ops.swapaxes(key, -1, -2)) + bias

    import tensorflow as tf

    shared = [axis for axis in (0, 1) if bias.shape[axis] == 1 and query.shape[axis] != 1]

    @tf.custom_gradient
    def apply(query, key, bias):
        def gradient(upstream):
            of_bias = tf.reduce_sum(upstream, shared, keepdims=True) if shared else upstream
            return (
                tf.matmul(upstream, key) * scale,
                tf.matmul(upstream, query * scale, transpose_a=True),
                of_bias,
            )

        return tf.matmul(query, key, transpose_b=True) * scale + bias, gradient

    return apply(query, key, bias)
