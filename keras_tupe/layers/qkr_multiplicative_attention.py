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
    method 2, a vector of the head's size method 3. With ones this is attention without positions.

    Differences from the source: the paper leaves open whether heads share a, how it starts and what
    [CLS] gets; the table decides. Method 3 makes no tensor (length, length, key_dim): it takes the
    memory of method 4, not ten times as much, and has no second derivatives.

    Arguments, errors, shapes and masking are those of `AbstractDistanceAttention`; the table has
    the width 1 or `key_dim`.

    Example:
        >>> table = keras_tupe.layers.RelativePositionTable(8, width=4, initializer="ones")
        >>> attention = QKRMultiplicativeAttention(num_heads=2, key_dim=4, position_table=table)
        >>> tuple(attention(keras.ops.zeros((3, 5, 8))).shape)
        (3, 5, 8)
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
