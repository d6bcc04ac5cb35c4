"""Vocabulary logits at masked positions."""

import keras
from keras import ops

from keras_tupe.layers._dense import Dense, add_bias
from keras_tupe.layers._normalization import LayerNormalization
from keras_tupe.layers._parts import (
    Configured,
    at_least_float32,
    at_positions,
    fresh,
    normal_unless,
)
from keras_tupe.layers.gelu import activation_of


@keras.saving.register_keras_serializable(package="keras_tupe")
class MaskedLMHead(Configured, keras.layers.Layer):
    """Predicts the tokens at given positions, with the embedding matrix as the last kernel.

    Equation (Devlin et al. 2019): at every position m of `mask_positions`

        logits[w] = LN(gelu(x_m W + b)) . E[w] + c[w]

    Args:
        token_embedding: the `TokenEmbedding` whose matrix E is shared.
        layer_norm_epsilon: epsilon of the layer normalization. Defaults to 1e-5.
        kernel_initializer: Keras initializer of W. Defaults to a normal of deviation 0.02.
        activation: `"gelu"`, the exact one, or `"gelu_approximate"`, by tanh. Defaults to `"gelu"`.
        **kwargs: `name`, `dtype` and the other arguments of `keras.layers.Layer`.

    Call arguments:
        hidden_states: `(batch, length, hidden_dim)`; W maps them to the width of E.
        mask_positions: integers `(batch, predictions)` in `[0, length)`; sample weights tell unused
            ones apart. `None` if `hidden_states` are at these positions already.
        training: whether gradients are to come; no number depends on it.

    Returns:
        Logits `(batch, predictions, vocabulary_size)`, in at least float32.

    Example:
        >>> head = MaskedLMHead(keras_tupe.layers.TokenEmbedding(vocabulary_size=11, hidden_dim=8))
        >>> tuple(head(np.zeros((1, 3, 8)), mask_positions=np.array([[2, 0]])).shape)
        (1, 2, 11)
    """

    def __init__(
        self,
        token_embedding,
        layer_norm_epsilon=1e-5,
        kernel_initializer=None,
        activation="gelu",
        **kwargs,
    ):
        super().__init__(autocast=False, **kwargs)
        self.token_embedding, self.layer_norm_epsilon = token_embedding, layer_norm_epsilon
        self.kernel_initializer = normal_unless(kernel_initializer)
        self.activation = activation
        given = {"kernel_initializer": fresh(self.kernel_initializer), "dtype": self.dtype_policy}
        activate, width = activation_of(activation), token_embedding.hidden_dim
        self.dense = Dense(width, activation=activate, name="dense", **given)
        self.normalization = LayerNormalization(
            epsilon=layer_norm_epsilon, dtype=self.dtype_policy, name="layer_norm"
        )

    def build(self, hidden_states_shape, mask_positions_shape=None):
        if not self.token_embedding.built:
            self.token_embedding.build()
        self.dense.build(hidden_states_shape)
        self.normalization.build((*hidden_states_shape[:-1], self.token_embedding.hidden_dim))
        shape = (self.token_embedding.vocabulary_size,)
        self.output_bias = self.add_weight(shape, "zeros", autocast=False, name="output_bias")

    def call(self, hidden_states, mask_positions, training=None):
        if mask_positions is not None:
            hidden_states = at_positions(hidden_states, mask_positions, training)
        states = self.normalization(self.dense(hidden_states))
        logits = self.token_embedding(states, reverse=True)
        dtype = at_least_float32(self.compute_dtype)
        return add_bias(ops.cast(logits, dtype), ops.cast(self.output_bias, dtype))

    def compute_output_spec(self, hidden_states, mask_positions, training=None):
        slots = hidden_states.shape[:-1] if mask_positions is None else mask_positions.shape
        shape = (*slots, self.token_embedding.vocabulary_size)
        return keras.KerasTensor(shape, at_least_float32(self.compute_dtype))
