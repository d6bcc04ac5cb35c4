"""TUPE's attention."""

import keras

from keras_tupe.layers.abstract_self_attention import AbstractSelfAttention


@keras.saving.register_keras_serializable(package="keras_tupe")
class UntiedPositionalAttention(AbstractSelfAttention):
    """Self-attention on content alone, to which an untied position bias is added.

    Words and positions have projections of their own, so no word is ever multiplied with a
    position. The bias comes from `UntiedPositionBias`, once per forward pass.

    Equation (Ke et al. 2021, eq. 7, and with a relative bias eq. 8):

        logits[h, i, j] = q_i . k_j / sqrt(2 d) + bias[h, i, j]

    The 2 counts the two dot products of the sum (content and position), so that their variance
    stays that of one. The bias is already scaled.

    Arguments, call arguments, shapes and masking are those of `AbstractSelfAttention`, except
    that `position_bias` is required.

    Raises:
        ValueError: if called without `position_bias`.

    Example:
        >>> hidden_states = keras.ops.zeros((3, 5, 8))
        >>> attention = UntiedPositionalAttention(num_heads=2, key_dim=4)
        >>> bias = keras.ops.zeros((1, 2, 5, 5))
        >>> tuple(attention(hidden_states, position_bias=bias).shape)
        (3, 5, 8)

    References:
        Ke, He, Liu. Rethinking Positional Encoding in Language Pre-training. ICLR 2021.
        https://arxiv.org/abs/2006.15595
    """

    num_terms = 2

    def _check_bias(self, position_bias, hidden_states):
        if position_bias is None:
            raise ValueError(
                "`UntiedPositionalAttention` scales the content for two terms and needs the second "
                "one. Pass the output of `UntiedPositionBias`, or use `PlainSelfAttention`. "
                "Received: position_bias=None"
            )
        super()._check_bias(position_bias, hidden_states)
