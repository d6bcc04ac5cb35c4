"""Products of hidden states with the embedding matrix."""

import keras
from keras import ops


def tied_products(hidden_states, token_embedding):
    """Returns `x_i . E[w]` for all tokens w, `(..., vocabulary_size)`, in the compute dtype.

    On TensorFlow it is one product, which needs no transpose of the matrix, and whose gradient for
    it is of its shape.

    Args:
        hidden_states: `(..., hidden_dim)`.
        token_embedding: the `TokenEmbedding` with the matrix E.
    """
    if keras.backend.backend() != "tensorflow":
        return token_embedding(hidden_states, reverse=True)
    import tensorflow as tf

    table = ops.cast(
        ops.convert_to_tensor(token_embedding.embeddings), token_embedding.compute_dtype
    )
    rows = tf.reshape(ops.cast(hidden_states, table.dtype), [-1, table.shape[1]])
    logits = tf.matmul(rows, table, transpose_b=True)
    found = tf.reshape(logits, tf.concat([tf.shape(hidden_states)[:-1], [table.shape[0]]], 0))
    return tf.ensure_shape(found, (*hidden_states.shape[:-1], table.shape[0]))
