"""TUPE's ablation BERT-A^d: positions have projections of their own, but all four terms stay."""

import keras
from keras import ops

from keras_tupe.layers import AbstractSelfAttention, PositionProjection, rows_of
from keras_tupe.positions import PositionMethod, always, attention, memory_unless_untied, oracle


@keras.saving.register_keras_serializable(package="keras_tupe")
class FourTermAttention(AbstractSelfAttention):
    """Self-attention on sums of a content and a position projection.

    Equation (Ke et al. 2021, the ablation BERT-A^d of Sec. 4.3):

        logits[h, i, j] = (q_i + p_i U^Q) . (k_j + p_j U^K) / sqrt(4 d)

    which is content-content, content-position, position-content and position-position. The
    position projections come from one `PositionProjection`, shared by all layers (our reading;
    the paper does not say).
    """

    num_terms = 4

    def of_layer(self, shared_positions):
        return tuple(
            ops.transpose(self.own_heads(ops.cast(x, self.logits_dtype), 1), (1, 0, 2))[:, None]
            for x in shared_positions
        )  # (h, 1, n, d) each

    def prepare(self, query, key, positions, block, is_real=None):
        position_query, position_key = positions
        query = query + rows_of(position_query, block.start, block.rows)
        return query, key + rows_of(position_key, block.offset, block.keys)


def logits_oracle(tokens, weights, dims, options):
    """s_ij = (x_i W^Q + p_i U^Q) . (x_j W^K + p_j U^K) / sqrt(4d)."""
    query, key = oracle.queries_and_keys(tokens, weights, dims)
    p = weights["shared_positions/embeddings"][: len(tokens)]
    of_query, of_key = oracle.position_queries_and_keys(p, weights, "shared_positions", dims)
    return oracle.dot_products(query + of_query, key + of_key) / (4 * dims.key_dim) ** 0.5


def _shared(dims, options):
    sizes = (dims.num_heads, dims.key_dim, dims.max_sequence_length)
    given = {"epsilon": dims.layer_norm_epsilon, "initializer": dims.initializer()}
    given |= {"width": dims.hidden_dim, "dtype": dims.dtype, "name": "shared_positions"}
    return PositionProjection(*sizes, **given)


METHOD = PositionMethod(
    summary="position projections of their own, all four terms kept",
    source="Ke et al. 2021, Sec. 4.3 (BERT-A^d)",
    logits_oracle=logits_oracle,
    equation=r"s_{ij} = \frac{(q_i + \mathrm{LN}(p_i) U^Q) \cdot (k_j + \mathrm{LN}(p_j) U^K)}"
    r"{\sqrt{4d}}",
    shared=_shared,
    attention=lambda dims, options: attention(FourTermAttention, dims),
    has_length_limit=always,
    prunes_heads=True,
    absolute_tables=("shared_positions/embeddings",),
    refused_memory=memory_unless_untied,
)
