"""Token vectors, tied to the vocabulary logits."""

import keras
from keras import ops

from keras_tupe.layers._checks import check_positive_integers, concrete
from keras_tupe.layers._parts import Configured, beyond_if_negative, normal_unless, take_rows


@keras.saving.register_keras_serializable(package="keras_tupe")
class TokenEmbedding(Configured, keras.layers.Layer):
    """A vector per token, usable in reverse as the last layer of a language model.

    Equation:

        forward:  out[b, i] = E[token_ids[b, i]]
        reverse:  out[b, i, w] = x_i . E[w]

    Unlike that of `keras.layers.ReversibleEmbedding`, the gradient of E is dense on every backend,
    which XLA under a distribution strategy needs; and ids outside the vocabulary are refused.

    Args:
        vocabulary_size, hidden_dim: number of tokens, and size of their vectors.
        initializer: Keras initializer of E. Defaults to a normal of deviation 0.02.
        **kwargs: `name`, `dtype` and the other arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: integers `(batch, length)`; with `reverse=True` hidden states `(..., hidden_dim)`.
        reverse: whether to return vocabulary logits. Defaults to `False`.

    Returns:
        `(batch, length, hidden_dim)`, or `(..., vocabulary_size)` in reverse, in the compute dtype.

    Raises:
        TypeError: if token ids are not integers.
        ValueError: if, in an eager call, a token id is outside `[0, vocabulary_size)`. In a graph
            TensorFlow on CPU stops with an error, as ONNX and LiteRT do, and JAX and GPUs return
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
        self.vocabulary_size, self.hidden_dim = vocabulary_size, hidden_dim
        self.initializer = normal_unless(initializer)

    def build(self, inputs_shape=None):
        size = (self.vocabulary_size, self.hidden_dim)
        # without autocast: rows are cast once they are taken, which are fewer
        self.embeddings = self.add_weight(size, self.initializer, autocast=False, name="embeddings")

    def call(self, inputs, reverse=False):
        if reverse:
            table = ops.cast(ops.convert_to_tensor(self.embeddings), self.compute_dtype)
            logits = products(ops.reshape(inputs, (-1, self.hidden_dim)), table)
            return ops.reshape(logits, (*ops.shape(inputs)[:-1], self.vocabulary_size))
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

    def _check_dtype(self, token_ids):
        dtype = keras.backend.standardize_dtype(token_ids.dtype)
        if "int" not in dtype:
            raise TypeError(
                f"Token ids must be integers. Cast them to int32. Received: ids of dtype {dtype}"
            )

    def compute_output_spec(self, inputs, reverse=False):
        if reverse:
            return keras.KerasTensor((*inputs.shape[:-1], self.vocabulary_size), self.compute_dtype)
        self._check_dtype(inputs)
        return keras.KerasTensor((*inputs.shape, self.hidden_dim), self.compute_dtype)


def products(rows, table):
    """Returns `(count, width)` times a table `(vocabulary_size, width)`, without transposes."""
    if keras.backend.backend() != "tensorflow":
        return ops.matmul(rows, ops.transpose(table))
    import tensorflow as tf

    return tf.matmul(ops.cast(rows, table.dtype), table, transpose_b=True)
