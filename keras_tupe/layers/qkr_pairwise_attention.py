"""Huang's method 4: all three pairs of query, key and relative position."""

import keras
from keras import ops

from keras_tupe.layers.abstract_distance_attention import AbstractDistanceAttention
from keras_tupe.layers.attention.block import key_distances, query_distances


@keras.saving.register_keras_serializable(package="keras_tupe")
class QKRPairwiseAttention(AbstractDistanceAttention):
    """Self-attention that sums the dot products of query, key and a learned vector of distances.

    Equation (Huang et al. 2020, eq. 16; eq. 17 is the same, completed to a product):

        logits[h, i, j] = (q_i . k_j + q_i . a_{j-i} + k_j . a_{j-i}) / sqrt(d)
                        = ((q_i + a_{j-i}) . (k_j + a_{j-i}) - a_{j-i} . a_{j-i}) / sqrt(d)

    Without the third term it is Shaw's method. With a vector per pair of positions instead of one
    per distance, p_j W^K beside q and p_i W^Q beside k, it becomes attention on absolute positions,
    but for their product p_i W^Q . p_j W^K.

    Differences from the source: the authors' released code shares a by heads and indexes it by
    query minus key; both are a matter of how the table is filled.

    Arguments, call arguments, errors, shapes and masking are those of `AbstractDistanceAttention`;
    the table has the width `key_dim`.

    Example:
        >>> table = keras_tupe.layers.RelativePositionTable(max_distance=8, num_heads=2, width=4)
        >>> attention = QKRPairwiseAttention(num_heads=2, key_dim=4, position_table=table)
        >>> tuple(attention(keras.ops.zeros((3, 5, 8))).shape)
        (3, 5, 8)
    """

    def distance_logits(self, query, key, table, block):
        of_query = query_distances(query * self.scale, table, block)
        return self.products(query, key) + of_query + key_distances(key * self.scale, table, block)

    def pair_logits(self, query, key, factor):
        factor = factor[:, None, None] * self.scale
        of_query = ops.sum(query * factor, axis=-1, keepdims=True)  # (h, b, t, 1)
        of_key = ops.swapaxes(ops.sum(key * factor, axis=-1, keepdims=True), -1, -2)
        return self.products(query, key) + of_query + of_key
