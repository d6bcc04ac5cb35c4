"""Vocabulary logits at masked positions."""

import keras
from keras import ops

from keras_tupe.layers._at_positions import at_positions
from keras_tupe.layers._compiled import one_pass
from keras_tupe.layers._dense import Dense
from keras_tupe.layers._exporting import has_own_gradients
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
            keras.initializers.RandomNormal(stddev=0.02)
            if kernel_initializer is None
            else kernel_initializer
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
        masked = hidden_states  # (b, predictions, m)
        if mask_positions is not None:
            masked = at_positions(hidden_states, mask_positions, training)
        transformed = self.normalization(self.dense(masked))
        dtype = at_least_float32(self.compute_dtype)
        bias = ops.cast(self.output_bias, dtype)
        if has_own_gradients(training):
            return _trained_logits(transformed, self.token_embedding, bias)
        return ops.cast(self.token_embedding(transformed, reverse=True), dtype) + bias

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
        embedding = unbuilt_layer(config["token_embedding"])
        return cls(**{**config, "token_embedding": embedding})


def _trained_logits(hidden_states, token_embedding, bias):
    """Returns the logits in the dtype of the bias, on TensorFlow.

    As one product, whose gradient for the embedding matrix is of its shape and needs no transpose;
    the bias joins in the product, or in half precision in the pass that widens the logits.
    """
    import tensorflow as tf

    table = ops.cast(
        ops.convert_to_tensor(token_embedding.embeddings), token_embedding.compute_dtype
    )
    rows = tf.reshape(ops.cast(hidden_states, table.dtype), [-1, table.shape[1]])
    logits = tf.matmul(rows, table, transpose_b=True)
    logits = tf.nn.bias_add(logits, bias) if logits.dtype == bias.dtype else _widened(logits, bias)
    return tf.reshape(logits, tf.concat([tf.shape(hidden_states)[:-1], [table.shape[0]]], 0))


def _widened(logits, bias):
    import tensorflow as tf

    @tf.custom_gradient
    def with_gradient(logits, bias):
        def gradient(upstream):
            sums = tf.raw_ops.BiasAddGrad(out_backprop=upstream)
            return tf.cast(upstream, logits.dtype), sums

        return _wide_sum(logits, bias), gradient

    return with_gradient(logits, bias)


@one_pass
def _wide_sum(logits, bias):
    return ops.cast(logits, bias.dtype) + bias
