"""Attention of one sequence to another one, as a decoder attends to what an encoder made."""

import keras
from keras import ops

from keras_tupe.layers._checks import check_positive_integers
from keras_tupe.layers._dense import HeadsDense
from keras_tupe.layers._parts import Configured, at_least_float32, fresh
from keras_tupe.layers.attention import core
from keras_tupe.layers.attention.block import Block
from keras_tupe.layers.dropout import Dropout


@keras.saving.register_keras_serializable(package="keras_tupe")
class CrossAttention(Configured, keras.layers.Layer):
    """Scaled dot-product attention of the tokens of one sequence to those of another.

    Equation (Vaswani et al. 2017, Sec. 3.2.3), per head:

        q_i = x_i W^Q + b^Q, k_j = m_j W^K + b^K, v_j = m_j W^V + b^V
        out_i = sum_j softmax_j(q_i . k_j / sqrt(d)) v_j,  concatenated over heads, W^O + b^O

    with x the sequence that attends and m the encoder's states. There is no term of positions, as a
    distance between tokens of two sequences means nothing.

    Args:
        num_heads, key_dim: number of heads, and size of each head d.
        dropout: share of attention scores dropped in training, in [0, 1). Defaults to 0.
        kernel_initializer: Keras initializer of the four kernels.
        **kwargs: `name`, `dtype` and the other arguments of `keras.layers.Layer`.

    Call arguments:
        hidden_states: `(batch, length, hidden_dim)`, like the answer.
        encoder_states: `(batch, source length, hidden_dim)`.
        encoder_padding_mask: optional integers or booleans `(batch, source length)`, 1 = token.
        training: whether to apply dropout.

    Masking: padded tokens of the encoder get exactly zero weight. Beside a source without any token
    the answer is the output bias, which is finite.

    Example:
        >>> tuple(CrossAttention(2, 4)(ops.zeros((3, 5, 8)), ops.zeros((3, 7, 8))).shape)
        (3, 5, 8)
    """

    def __init__(
        self, num_heads, key_dim, dropout=0.0, kernel_initializer="glorot_uniform", **kwargs
    ):
        super().__init__(**kwargs)
        check_positive_integers(num_heads=num_heads, key_dim=key_dim)
        self.num_heads, self.key_dim, self.dropout = num_heads, key_dim, dropout
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.query_dense, self.key_dense, self.value_dense = (
            self._dense("btm,mhd->bthd", (None, num_heads, key_dim), "hd", name)
            for name in ("query", "key", "value")
        )
        self.dropout_layer = Dropout(dropout, name="dropout", dtype=self.dtype_policy)

    def _dense(self, equation, output_shape, bias_axes, name):
        given = {"kernel_initializer": fresh(self.kernel_initializer), "dtype": self.dtype_policy}
        return HeadsDense(equation, output_shape, bias_axes=bias_axes, name=name, **given)

    def build(self, hidden_states_shape, encoder_states_shape=None):
        output_shape = (None, hidden_states_shape[-1])
        self.output_dense = self._dense("bthd,hdm->btm", output_shape, "m", "output")
        self.query_dense.build(hidden_states_shape)
        for dense in (self.key_dense, self.value_dense):
            dense.build((None, None, (encoder_states_shape or hidden_states_shape)[-1]))
        self.output_dense.build((None, None, self.num_heads, self.key_dim))

    def call(self, hidden_states, encoder_states, encoder_padding_mask=None, training=None):
        kept = self.keys_and_values(encoder_states)
        return self.attended(hidden_states, kept, encoder_padding_mask, training)

    def keys_and_values(self, encoder_states):
        """Returns keys and values of `encoder_states`, each `(heads, batch, source, key_dim)`."""
        denses = (self.key_dense, self.value_dense)
        return tuple(_heads_first(dense(encoder_states)) for dense in denses)

    def attended(self, hidden_states, kept, encoder_padding_mask=None, training=None):
        """Returns the answer of a call to what `keys_and_values` returned, `kept`.

        `hidden_states`, `encoder_padding_mask` and `training` are as in the call arguments.
        """
        dtype = at_least_float32(self.compute_dtype)
        key, value = kept
        query = ops.cast(_heads_first(self.query_dense(hidden_states)), dtype)
        parts = core.Parts(query * self.key_dim**-0.5, ops.cast(key, dtype))
        block = Block(0, ops.shape(query)[2], 0, ops.shape(key)[2])
        is_real = encoder_padding_mask
        if is_real is not None:
            is_real = ops.cast(ops.cast(is_real, "bool"), dtype)[None, :, :, None]  # (1, b, s, 1)
        dropout = core.dropout_of(self, training)
        context = core.attend(_products, parts, value, block, is_real, dropout=dropout)
        return self.output_dense(ops.transpose(context, (1, 2, 0, 3)))

    def compute_output_spec(self, hidden_states, *args, **kwargs):
        return keras.KerasTensor(hidden_states.shape, self.compute_dtype)


def _products(parts, block):
    return ops.matmul(parts.rows, ops.swapaxes(parts.keys, -1, -2))


def _heads_first(x):
    return ops.transpose(x, (2, 0, 1, 3))  # (b, t, h, d) -> (h, b, t, d)
