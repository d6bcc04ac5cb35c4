"""Huang's method 1: query-key products times a scalar per distance, unsigned."""

import math

from keras_tupe.layers import QKRMultiplicativeAttention
from keras_tupe.positions import _oracle
from keras_tupe.positions._distance_table import distance_method


def logits_oracle(tokens, weights, dims, options):
    """s_ij = (q_i . k_j) a_{|j - i|} / sqrt(d)."""
    query, key = _oracle.queries_and_keys(tokens, weights, dims)
    a = _oracle.distance_vectors(len(tokens), weights, dims, options, signed=False)
    return _oracle.dot_products(query, key) * a[..., 0] / math.sqrt(dims.key_dim)


METHOD = distance_method(
    QKRMultiplicativeAttention,
    initializer="ones",
    width=1,
    signed=False,
    summary="query-key products times a scalar per distance, unsigned",
    source="Huang et al. 2020, eqs. 11 and 12 (method 1)",
    logits_oracle=logits_oracle,
)
