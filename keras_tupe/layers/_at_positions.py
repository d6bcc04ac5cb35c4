"""Hidden states at some positions of each sequence."""

from keras import ops

from keras_tupe.layers._parts import beyond_if_negative
from keras_tupe.layers._tracing import has_own_gradients


def at_positions(hidden_states, positions, training=None):
    """Returns the hidden states at integer positions `(batch, count)` in `[0, length)`."""
    indices = beyond_if_negative(positions, ops.shape(hidden_states)[1])
    if not has_own_gradients(training):
        return ops.take_along_axis(hidden_states, ops.expand_dims(indices, -1), axis=1)
    import tensorflow as tf

    return tf.gather(hidden_states, indices, axis=1, batch_dims=1)  # no transposes
