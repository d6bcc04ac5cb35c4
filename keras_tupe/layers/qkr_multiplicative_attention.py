"""Huang's methods 1 to 3: query times key times relative position."""

import keras

from keras_tupe.layers.abstract_distance_attention import AbstractDistanceAttention
from keras_tupe.layers.attention.block import distance_values
from keras_tupe.layers.attention.channels import channel_distances


@keras.saving.register_keras_serializable(package="keras_tupe")
class QKRMultiplicativeAttention(AbstractDistanceAttention):
    """Self-attention whose query-key products are multiplied by learned weights of distances.

    Equation (Huang et al. 2020, eqs. 11 to 15), with a from `RelativePositionTable`:

        logits[h, i, j] = sum_t q_it k_jt a_{j-i, t} / sqrt(d)

    The table says which method it is: an unsigned scalar per distance is method 1, a signed one
    method 2, a vector of the head's size method 3. Where all of a is 1 this is attention
    without positions, which is where training starts when the table starts with ones.

    Differences from the source: the paper leaves open whether heads share a, how it is
    initialized and what [CLS] gets; all three are settings of the table. Method 3 needs no tensor
    (length, length, key_dim): its memory is that of method 4, not ten times as much.

    Arguments, call arguments, errors, shapes and masking are those of `AbstractDistanceAttention`;
    the table has the width 1 or `key_dim`.

    Notes:
        Gradients of method 3 are a backward pass of its own; it has no second derivatives.

    Example:
        >>> from keras_tupe.layers import RelativePositionTable
        >>> table = RelativePositionTable(max_distance=8, width=4, initializer="ones")
        >>> attention = QKRMultiplicativeAttention(num_heads=2, key_dim=4, position_table=table)
        >>> tuple(attention(keras.ops.zeros((3, 5, 8))).shape)
        (3, 5, 8)

    References:
        Huang et al. Improve Transformer Models with Better Relative Position Embeddings. Findings
        of EMNLP 2020. https://arxiv.org/abs/2009.13658
    """

    unrolls_blocks = False

    @property
    def table_widths(self):
        return 1, self.key_dim

    def distance_logits(self, query, key, table, block):
        if table.shape[1] == 1:
            return self.products(query, key) * distance_values(table[:, 0], block)
        return channel_distances(query * self.scale, key, table, block)

    def pair_logits(self, query, key, factor):
        return self.products(query * factor[:, None, None], key)
