"""Vocabulary logits at masked positions."""

import keras
from keras import ops

from keras_tupe.layers._at_positions import at_positions
from keras_tupe.layers._dense import Dense, add_bias
from keras_tupe.layers._normalization import LayerNormalization
from keras_tupe.layers._parts import at_least_float32, fresh, unbuilt_layer
from keras_tupe.layers.gelu import activation_of


@keras.saving.register_keras_serializable(package="keras_tupe")
class MaskedLMHead(keras.layers.Layer):
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
        hidden_states: `(batch, length, hidden_dim)`; W maps them to the width of E, which may be
            another.
        mask_positions: integers `(batch, predictions)`, positions in `[0, length)`. `None` if
            the hidden states are those already, `(batch, predictions, hidden_dim)`.
        training: whether gradients are to come; no number depends on it.

    Returns:
        Logits `(batch, predictions, vocabulary_size)`, in at least float32.

    Masking: none; unused slots of `mask_positions` are told apart by their sample weights.

    Raises:
        ValueError: if `activation` is neither.

    Example:
        >>> embedding = keras_tupe.layers.TokenEmbedding(vocabulary_size=11, hidden_dim=8)
        >>> hidden_states = embedding(np.array([[1, 2, 3]]))
        >>> tuple(MaskedLMHead(embedding)(hidden_states, mask_positions=np.array([[2, 0]])).shape)
        (1, 2, 11)

    References:
        Devlin et al. BERT. NAACL 2019. https://arxiv.org/abs/1810.04805
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
        self.token_embedding = token_embedding
        self.layer_norm_epsilon = layer_norm_epsilon
        self.kernel_initializer = keras.initializers.get(
            kernel_initializer or keras.initializers.RandomNormal(stddev=0.02)
        )
        self.activation = activation
        self.dense = Dense(
            token_embedding.hidden_dim,
            activation=activation_of(activation),
            kernel_initializer=fresh(self.kernel_initializer),
            dtype=self.dtype_policy,
            name="dense",
        )
        self.normalization = LayerNormalization(
            epsilon=layer_norm_epsilon, dtype=self.dtype_policy, name="layer_norm"
        )

    def build(self, hidden_states_shape, mask_positions_shape=None):
        if not self.token_embedding.built:
            self.token_embedding.build()
        self.dense.build(hidden_states_shape)
        self.normalization.build((*hidden_states_shape[:-1], self.token_embedding.hidden_dim))
        self.output_bias = self.add_weight(
            shape=(self.token_embedding.vocabulary_size,),
            initializer="zeros",
            autocast=False,
            name="output_bias",
        )

    def call(self, hidden_states, mask_positions, training=None):
        x = hidden_states
        if mask_positions is not None:
            x = at_positions(x, mask_positions, training)
        logits = self.token_embedding(self.normalization(self.dense(x)), reverse=True)
        dtype = at_least_float32(self.compute_dtype)
        return add_bias(ops.cast(logits, dtype), ops.cast(self.output_bias, dtype))

    def compute_output_spec(self, hidden_states, mask_positions, training=None):
        slots = hidden_states.shape[:-1] if mask_positions is None else mask_positions.shape
        shape = (*slots, self.token_embedding.vocabulary_size)
        return keras.KerasTensor(shape, at_least_float32(self.compute_dtype))

    def get_config(self):
        return {
            **super().get_config(),
            "token_embedding": keras.saving.serialize_keras_object(self.token_embedding),
            "layer_norm_epsilon": self.layer_norm_epsilon,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
            "activation": self.activation,
        }

    @classmethod
    def from_config(cls, config):
        return cls(**{**config, "token_embedding": unbuilt_layer(config["token_embedding"])})
