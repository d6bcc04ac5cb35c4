"""Token vectors, tied to the vocabulary logits."""

import keras
from keras import ops

from keras_tupe.layers._checks import check_positive_integers, concrete
from keras_tupe.layers._parts import beyond_if_negative, take_rows


@keras.saving.register_keras_serializable(package="keras_tupe")
class TokenEmbedding(keras.layers.Layer):
    """A vector per token, usable in reverse as the last layer of a language model.

    Equation:

        forward:  out[b, i] = E[token_ids[b, i]]
        reverse:  out[b, i, w] = x_i . E[w]

    Differs from `keras.layers.ReversibleEmbedding` in two things: the gradient of E is dense on
    every backend (the reverse use makes it dense anyway, and XLA under a distribution strategy
    needs it), and an id outside the vocabulary is an error where it can be seen.

    Args:
        vocabulary_size: number of tokens.
        hidden_dim: size of the vectors.
        initializer: Keras initializer of E. Defaults to a normal of deviation 0.02.
        **kwargs: `name`, `dtype` and the other arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: integers `(batch, length)`; with `reverse=True` hidden states
            `(..., hidden_dim)`.
        reverse: whether to return vocabulary logits. Defaults to `False`.

    Returns:
        `(batch, length, hidden_dim)`, or `(..., vocabulary_size)` in reverse, in the compute
        dtype.

    Masking: none.

    Raises:
        TypeError: if token ids are not integers.
        ValueError: if a size is not a positive integer, or, in an eager call, a token id is
            outside `[0, vocabulary_size)`. Inside a compiled graph no check is made: TensorFlow
            on CPU then stops with an error, as ONNX and LiteRT do, and JAX and GPUs return
            undefined vectors. There a negative id counts as `vocabulary_size`.

    Example:
        >>> layer = TokenEmbedding(vocabulary_size=11, hidden_dim=8)
        >>> hidden_states = layer(np.array([[1, 2, 3]]))
        >>> tuple(hidden_states.shape), tuple(layer(hidden_states, reverse=True).shape)
        ((1, 3, 8), (1, 3, 11))
    """

    def __init__(self, vocabulary_size, hidden_dim, initializer=None, **kwargs):
        super().__init__(**kwargs)
        check_positive_integers(vocabulary_size=vocabulary_size, hidden_dim=hidden_dim)
        self.vocabulary_size = vocabulary_size
        self.hidden_dim = hidden_dim
        self.initializer = keras.initializers.get(
            keras.initializers.RandomNormal(stddev=0.02) if initializer is None else initializer
        )

    def build(self, inputs_shape=None):
        self.embeddings = self.add_weight(
            shape=(self.vocabulary_size, self.hidden_dim),
            initializer=self.initializer,
            autocast=False,  # rows are cast once they are taken: they are fewer
            name="embeddings",
        )

    def call(self, inputs, reverse=False):
        if reverse:
            return self._products(inputs)
        self._check_dtype(inputs)
        values = concrete(inputs)
        if values is not None and values.size:
            low, high = values.min(), values.max()
            if low < 0 or high >= self.vocabulary_size:
                raise ValueError(
                    f"Token ids must lie in [0, vocabulary_size={self.vocabulary_size}). Was the "
                    "text encoded with another vocabulary? Received: token id="
                    f"{low if low < 0 else high}"
                )
        rows = take_rows(self.embeddings, beyond_if_negative(inputs, self.vocabulary_size))
        return ops.cast(rows, self.compute_dtype)

    def _products(self, x):
        table = ops.cast(ops.convert_to_tensor(self.embeddings), self.compute_dtype)
        if keras.backend.backend() != "tensorflow":
            return ops.matmul(x, ops.transpose(table))
        import tensorflow as tf

        # one product, without transposes there and back
        rows = ops.reshape(ops.cast(x, table.dtype), (-1, self.hidden_dim))
        logits = tf.matmul(rows, table, transpose_b=True)
        return ops.reshape(logits, (*ops.shape(x)[:-1], self.vocabulary_size))

    def _check_dtype(self, token_ids):
        dtype = keras.backend.standardize_dtype(token_ids.dtype)
        if "int" not in dtype:
            raise TypeError(
                "Token ids must be integers. Cast them to int32. Received: token ids of dtype "
                f"{dtype}"
            )

    def compute_output_spec(self, inputs, reverse=False):
        if reverse:
            return keras.KerasTensor((*inputs.shape[:-1], self.vocabulary_size), self.compute_dtype)
        self._check_dtype(inputs)
        return keras.KerasTensor((*inputs.shape, self.hidden_dim), self.compute_dtype)

    def get_config(self):
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "hidden_dim": self.hidden_dim,
            "initializer": keras.initializers.serialize(self.initializer),
        }
