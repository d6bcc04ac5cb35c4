"""Huang's method 3: query-key products times a vector per distance."""

import math

import numpy as np

from keras_tupe.layers import QKRMultiplicativeAttention
from keras_tupe.positions import _oracle
from keras_tupe.positions._distance_table import distance_method


def logits_oracle(tokens, weights, dims, options):
    """s_ij = sum_t q_it k_jt a_{j - i, t} / sqrt(d)."""
    query, key = _oracle.queries_and_keys(tokens, weights, dims)
    a = _oracle.distance_vectors(len(tokens), weights, dims, options)
    logits = np.empty(a.shape[:3])
    for h, i, j in np.ndindex(logits.shape):
        logits[h, i, j] = np.sum(query[h, i] * key[h, j] * a[h, i, j]) / math.sqrt(dims.key_dim)
    return logits


METHOD = distance_method(
    QKRMultiplicativeAttention,
    initializer="ones",
    summary="query-key products weighted per channel by a vector per distance",
    source="Huang et al. 2020, eqs. 14 and 15 (method 3)",
    logits_oracle=logits_oracle,
)
