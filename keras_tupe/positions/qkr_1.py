"""Huang's method 1: query-key products times a scalar per distance, unsigned."""

from keras_tupe.layers import QKRMultiplicativeAttention
from keras_tupe.positions import distance_method, oracle


def logits_oracle(tokens, weights, dims, options):
    """s_ij = (q_i . k_j) a_{|j - i|} / sqrt(d)."""
    a = oracle.distance_vectors(len(tokens), weights, dims, options, signed=False)
    return oracle.content_logits(tokens, weights, dims, num_terms=1) * a[..., 0]


METHOD = distance_method(
    QKRMultiplicativeAttention,
    initializer="ones",
    starts_as_none=True,
    width=1,
    signed=False,
    summary="query-key products times a scalar per distance, unsigned",
    source="Huang et al. 2020, eqs. 11 and 12 (method 1)",
    logits_oracle=logits_oracle,
    equation=r"s_{ij} = \frac{(q_i \cdot k_j) \, a_{|j-i|}}{\sqrt{d}}",
    relative_step_time=(1.02, 1.06),
)
