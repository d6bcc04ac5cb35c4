"""Shaw's relative positions: a learned vector per distance, added to the keys."""

import keras

from keras_tupe.layers import AbstractDistanceAttention, query_distances
from keras_tupe.positions import distance_method, oracle


@keras.saving.register_keras_serializable(package="keras_tupe")
class ShawAttention(AbstractDistanceAttention):
    """Self-attention on keys that have a learned vector of the distance added.

    Equation (Shaw et al. 2018, eq. 4; Huang et al. 2020, eqs. 7 to 9):

        logits[h, i, j] = q_i . (k_j + a_{j - i}) / sqrt(d)

    Differences from the source: only the keys; Shaw's vectors of the values are left out, as in
    Huang et al., where no method changes the values.
    """

    def distance_logits(self, query, key, table, block):
        return self.products(query, key) + query_distances(query * self.scale, table, block)

    def pair_logits(self, query, key, factor):
        return self.products(query, key + factor[:, None, None])


def logits_oracle(tokens, weights, dims, options):
    """s_ij = q_i . (k_j + a_{j - i}) / sqrt(d)."""
    query, key = oracle.queries_and_keys(tokens, weights, dims)
    a = oracle.distance_vectors(len(tokens), weights, dims, options)
    products = query[:, :, None] * (key[:, None] + a)  # (h, i, j, t)
    return products.sum(axis=-1) / dims.key_dim**0.5


METHOD = distance_method(
    ShawAttention,
    initializer="normal",
    dead=("key_bias", "cls_row"),
    summary="a learned vector per distance, added to the key",
    source="Shaw et al. 2018; Huang et al. 2020, eqs. 7 to 9",
    logits_oracle=logits_oracle,
    equation=r"s_{ij} = \frac{q_i \cdot (k_j + a_{j-i})}{\sqrt{d}}",
    relative_step_time=(1.06, 1.16),
)
