"""TUPE's attention."""

import keras

from keras_tupe.layers.abstract_self_attention import AbstractSelfAttention


@keras.saving.register_keras_serializable(package="keras_tupe")
class UntiedPositionalAttention(AbstractSelfAttention):
    """Self-attention on content alone, to which an untied position bias is added.

    No word is ever multiplied with a position. The bias comes from `UntiedPositionBias`.

    Equation (Ke et al. 2021, eq. 7, and with a relative bias eq. 8):

        logits[h, i, j] = q_i . k_j / sqrt(2 d) + bias[h, i, j]

    The 2 counts the dot products of the sum, whose variance stays that of one; the bias is scaled.

    Arguments, call arguments, shapes and masking are those of `AbstractSelfAttention`, but that
    `position_bias` is required.

    Example:
        >>> attention, bias = UntiedPositionalAttention(2, 4), keras.ops.zeros((1, 2, 5, 5))
        >>> tuple(attention(keras.ops.zeros((3, 5, 8)), position_bias=bias).shape)
        (3, 5, 8)
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
