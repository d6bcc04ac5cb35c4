"""Huang's method 4: the three dot products of query, key and a vector per distance."""

from keras_tupe.layers import QKRPairwiseAttention
from keras_tupe.positions import distance_method, oracle


def logits_oracle(tokens, weights, dims, options):
    """s_ij = (q_i . k_j + q_i . a_{j - i} + k_j . a_{j - i}) / sqrt(d)."""
    query, key = oracle.queries_and_keys(tokens, weights, dims)
    a = oracle.distance_vectors(len(tokens), weights, dims, options)

    def logit(h, i, j):
        q, k, r = query[h, i], key[h, j], a[h, i, j]
        return (q @ k + q @ r + k @ r) / dims.key_dim**0.5

    return oracle.per_pair(logit, dims.num_heads, len(tokens))


METHOD = distance_method(
    QKRPairwiseAttention,
    initializer="normal",
    summary="dot products of query, key and a vector per distance, all pairs",
    source="Huang et al. 2020, eqs. 16 and 17 (method 4)",
    logits_oracle=logits_oracle,
    equation=r"s_{ij} = \frac{q_i \cdot k_j + q_i \cdot a_{j-i} + k_j \cdot a_{j-i}}{\sqrt{d}}",
    relative_step_time=(1.16, 1.41),
)
