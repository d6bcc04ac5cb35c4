"""Queries and keys of positions."""

import keras
from keras import ops

from keras_tupe.layers._checks import check_positive_integers, checked_length
from keras_tupe.layers._dense import EinsumDense
from keras_tupe.layers._parts import Configured, at_least_float32, fresh, normal_unless


@keras.saving.register_keras_serializable(package="keras_tupe")
class PositionProjection(Configured, keras.layers.Layer):
    """Learned positions, projected to queries and keys of their own.

    Equation (Ke et al. 2021, Sec. 3.1): with p_i learned, LN a layer normalization,

        position_query[i, h] = LN(p_i) U^Q_h,  position_key[i, h] = LN(p_i) U^K_h

    Heads share p; U^Q and U^K differ per head and are shared by all layers of an encoder.

    Args:
        num_heads: number of heads H.
        key_dim: size of each head d.
        max_sequence_length: number of positions.
        use_bias: whether U^Q and U^K have biases, as in TUPE's released code. The paper has
            none, which is the default.
        epsilon: epsilon of the layer normalization. Defaults to 1e-5, as the released code.
        initializer: Keras initializer of p, U^Q and U^K. Defaults to a normal of deviation 0.02.
        width: number of values of p. Defaults to `None`: H * d; an encoder of which heads were
            removed has more.
        **kwargs: `name`, `dtype` and the other arguments of `keras.layers.Layer`.

    Call arguments:
        hidden_states: `(batch, length, hidden_dim)`; only its length is used.

    Returns:
        Pair of tensors `(length, num_heads, key_dim)`, queries and keys, in at least float32.

    Raises:
        ValueError: if a size is not a positive integer, or the length is known and above
            `max_sequence_length`.

    Example:
        >>> queries, keys = PositionProjection(2, 4, 16)(keras.ops.zeros((3, 5, 8)))
        >>> tuple(queries.shape)
        (5, 2, 4)

    References:
        Ke, He, Liu. Rethinking Positional Encoding in Language Pre-training. ICLR 2021.
        https://arxiv.org/abs/2006.15595
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
        super().__init__(autocast=False, **kwargs)
        check_positive_integers(
            num_heads=num_heads, key_dim=key_dim, max_sequence_length=max_sequence_length
        )
        self.num_heads = num_heads
        self.key_dim = key_dim
        self.max_sequence_length = max_sequence_length
        self.width = num_heads * key_dim if width is None else width
        check_positive_integers(width=self.width)
        self.use_bias = use_bias
        self.epsilon = epsilon
        self.initializer = normal_unless(initializer)
        # Positions are few: half precision would save nothing here and round the logits.
        dtype = at_least_float32(self.compute_dtype)
        self.normalization = keras.layers.LayerNormalization(
            epsilon=epsilon, dtype=dtype, name="layer_norm"
        )
        self.query_dense, self.key_dense = (
            EinsumDense(
                "tm,mhd->thd",
                output_shape=(num_heads, key_dim),
                bias_axes="hd" if use_bias else None,
                kernel_initializer=fresh(self.initializer),
                dtype=dtype,
                name=name,
            )
            for name in ("query", "key")
        )

    def build(self, hidden_states_shape):
        self.embeddings = self.add_weight(
            shape=(self.max_sequence_length, self.width),
            initializer=fresh(self.initializer),
            autocast=False,
            name="embeddings",
        )
        for layer in (self.normalization, self.query_dense, self.key_dense):
            layer.build((None, self.width))

    def project(self, embeddings):
        """Returns queries and keys of `embeddings`, position vectors `(rows, width)`."""
        normalized = self.normalization(embeddings)
        return self.query_dense(normalized), self.key_dense(normalized)

    def rows(self, length):
        """Returns queries and keys of the first `length` positions."""
        return self.project(ops.convert_to_tensor(self.embeddings)[:length])

    def call(self, hidden_states):
        return self.rows(checked_length(hidden_states, self.max_sequence_length, self.name))

    def compute_output_spec(self, hidden_states):
        checked_length(hidden_states, self.max_sequence_length, self.name)
        shape = (hidden_states.shape[1], self.num_heads, self.key_dim)
        dtype = at_least_float32(self.compute_dtype)
        return keras.KerasTensor(shape, dtype), keras.KerasTensor(shape, dtype)
