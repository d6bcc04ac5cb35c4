"""Attention on content, plus a bias when there is one."""

import keras

from keras_tupe.layers.abstract_self_attention import AbstractSelfAttention


@keras.saving.register_keras_serializable(package="keras_tupe")
class PlainSelfAttention(AbstractSelfAttention):
    """Scaled dot-product self-attention with an optional additive position bias.

    Equation (Vaswani et al. 2017; with a bias Raffel et al. 2020):

        logits[h, i, j] = q_i . k_j / sqrt(d) + bias[h, i, j]

    Arguments, call arguments, shapes and masking are those of `AbstractSelfAttention`.

    Example:
        >>> tuple(PlainSelfAttention(num_heads=2, key_dim=4)(np.zeros((3, 5, 8))).shape)
        (3, 5, 8)
    """
