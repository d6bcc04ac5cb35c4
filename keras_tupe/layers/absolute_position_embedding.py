"""BERT's learned absolute positions."""

import keras
from keras import ops

from keras_tupe.layers._checks import check_positive_integers, checked_length
from keras_tupe.layers._parts import Configured, normal_unless, starts


@keras.saving.register_keras_serializable(package="keras_tupe")
class AbsolutePositionEmbedding(Configured, keras.layers.Layer):
    """Adds a learned vector per position to the token vectors.

    Equation (Devlin et al. 2019; Ke et al. 2021, eq. 2):

        out[i] = x_i + p_i

    Differs from `keras_hub.layers.PositionEmbedding`, which returns the p_i alone and
    fails on a sequence longer than its table from inside the graph.

    Args:
        max_sequence_length: number of positions; known lengths above it are refused.
        initializer: Keras initializer of p. Defaults to a normal of deviation 0.02.
        **kwargs: `name`, `dtype` and the other arguments of `keras.layers.Layer`.

    Call arguments:
        hidden_states: `(batch, length, hidden_dim)`, like the answer.
        start_index: position of the first one, an integer or a scalar tensor. Defaults to 0.

    Example:
        >>> tuple(AbsolutePositionEmbedding(16)(ops.zeros((3, 5, 8))).shape)
        (3, 5, 8)
    """

    def __init__(self, max_sequence_length, initializer=None, **kwargs):
        super().__init__(**kwargs)
        check_positive_integers(max_sequence_length=max_sequence_length)
        self.max_sequence_length = max_sequence_length
        self.initializer = normal_unless(initializer)

    def build(self, hidden_states_shape):
        shape = (self.max_sequence_length, hidden_states_shape[-1])
        self.embeddings = self.add_weight(shape, self.initializer, name="embeddings")

    def call(self, hidden_states, start_index=0):
        length = checked_length(hidden_states, self.max_sequence_length, self.name)
        table = ops.convert_to_tensor(self.embeddings)
        if isinstance(start_index, int) and start_index == 0:
            return hidden_states + table[:length]
        return hidden_states + ops.slice(table, starts(start_index, 0), (length, table.shape[1]))

    def compute_output_spec(self, hidden_states, start_index=0):
        checked_length(hidden_states, self.max_sequence_length, self.name)
        return keras.KerasTensor(hidden_states.shape, self.compute_dtype)
