"""Queries and keys of positions."""

import keras
from keras import ops

from keras_tupe.layers._checks import check_positive_integers, checked_length
from keras_tupe.layers._dense import EinsumDense
from keras_tupe.layers._parts import fresh
from keras_tupe.layers.abstract_position_tensors import AbstractPositionTensors


@keras.saving.register_keras_serializable(package="keras_tupe")
class PositionProjection(AbstractPositionTensors):
    """Learned positions, projected to queries and keys of their own.

    Equation (Ke et al. 2021, Sec. 3.1): with p_i learned, LN a layer normalization,

        position_query[i, h] = LN(p_i) U^Q_h,  position_key[i, h] = LN(p_i) U^K_h

    Heads share p; U^Q and U^K differ per head and are shared by all layers of an encoder.

    Args:
        num_heads, key_dim: number of heads H, and size of each head d.
        max_sequence_length: number of positions; known lengths above it are refused.
        use_bias: whether U^Q and U^K have biases, as in the released code. Defaults to `False`.
        epsilon: epsilon of the layer normalization. Defaults to 1e-5, as the released code.
        initializer: Keras initializer of p, U^Q and U^K. Defaults to a normal of deviation 0.02.
        width: values of p_i. Defaults to `None`: H * d; more where heads were removed.
        **kwargs: as of `AbstractPositionTensors`, like the call arguments.

    Returns:
        Pair of tensors `(length, num_heads, key_dim)`, queries and keys, in at least float32.

    Example:
        >>> queries, keys = PositionProjection(2, 4, 16)(keras.ops.zeros((3, 5, 8)))
        >>> tuple(queries.shape)
        (5, 2, 4)
    """

    def __init__(
        self,
        num_heads,
        key_dim,
        max_sequence_length,
        use_bias=False,
        epsilon=1e-5,
        initializer=None,
        width=None,
        **kwargs,
    ):
        super().__init__(initializer, **kwargs)
        sizes = {"num_heads": num_heads, "key_dim": key_dim}
        check_positive_integers(**sizes, max_sequence_length=max_sequence_length)
        self.num_heads, self.key_dim = num_heads, key_dim
        self.max_sequence_length = max_sequence_length
        self.width = num_heads * key_dim if width is None else width
        check_positive_integers(width=self.width)
        self.use_bias, self.epsilon = use_bias, epsilon
        # Positions are few: half precision would save nothing here and round the logits.
        self.normalization = keras.layers.LayerNormalization(
            epsilon=epsilon, dtype=self.table_dtype, name="layer_norm"
        )
        given = {"output_shape": (num_heads, key_dim), "bias_axes": "hd" if use_bias else None}
        given |= {"dtype": self.table_dtype}
        self.query_dense, self.key_dense = (
            EinsumDense("tm,mhd->thd", **given, kernel_initializer=fresh(self.initializer), name=x)
            for x in ("query", "key")
        )

    def build(self, hidden_states_shape):
        self.embeddings = self.add_table("embeddings", (self.max_sequence_length, self.width))
        for layer in (self.normalization, self.query_dense, self.key_dense):
            layer.build((None, self.width))

    def project(self, embeddings):
        """Returns queries and keys of `embeddings`, position vectors `(rows, width)`."""
        normalized = self.normalization(embeddings)
        return self.query_dense(normalized), self.key_dense(normalized)

    def rows(self, length):
        """Returns queries and keys of the first `length` positions."""
        return self.project(ops.convert_to_tensor(self.embeddings)[:length])

    def tensors(self, length):
        return self.rows(length)

    def compute_output_spec(self, hidden_states):
        checked_length(hidden_states, self.max_sequence_length, self.name)
        shape = (hidden_states.shape[1], self.num_heads, self.key_dim)
        return tuple(keras.KerasTensor(shape, self.table_dtype) for _ in range(2))
