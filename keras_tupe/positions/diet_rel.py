"""DIET-REL: a free scalar per distance, head and layer."""

import keras

from keras_tupe.layers import AbstractDistanceAttention, distance_values
from keras_tupe.positions import distance_method, oracle


@keras.saving.register_keras_serializable(package="keras_tupe")
class DistanceBiasAttention(AbstractDistanceAttention):
    """Self-attention with a learned scalar per distance added, in every layer its own.

    Equation (Chen et al. 2021, arXiv:2104.08698, DIET-REL), the scalar unscaled:

        logits[h, i, j] = q_i . k_j / sqrt(d) + a_{j - i}

    Differences from T5: no buckets, and no sharing by layers.
    """

    table_widths = (1,)

    def distance_logits(self, query, key, table, block):
        return self.products(query, key) + distance_values(table[:, 0], block)

    def pair_logits(self, query, key, factor):
        return self.products(query, key) + factor[:, None, None]


def logits_oracle(tokens, weights, dims, options):
    """s_ij = q_i . k_j / sqrt(d) + R[j - i]."""
    a = oracle.distance_vectors(len(tokens), weights, dims, options)
    return oracle.content_logits(tokens, weights, dims, num_terms=1) + a[..., 0]


METHOD = distance_method(
    DistanceBiasAttention,
    initializer="normal",
    width=1,
    dead=("key_bias", "cls_row"),
    summary="a free scalar per distance, head and layer",
    source="Chen et al. 2021, Sec. 3 (DIET-REL)",
    logits_oracle=logits_oracle,
    equation=r"s_{ij} = \frac{q_i \cdot k_j}{\sqrt{d}} + a_{j-i}",
)
