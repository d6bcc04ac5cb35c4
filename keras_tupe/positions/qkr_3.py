"""Huang's method 3: query-key products times a vector per distance."""

from keras_tupe.layers import QKRMultiplicativeAttention
from keras_tupe.positions import distance_method, oracle


def logits_oracle(tokens, weights, dims, options):
    """s_ij = sum_t q_it k_jt a_{j - i, t} / sqrt(d)."""
    query, key = oracle.queries_and_keys(tokens, weights, dims)
    a = oracle.distance_vectors(len(tokens), weights, dims, options)
    products = query[:, :, None] * key[:, None] * a  # (h, i, j, t)
    return products.sum(axis=-1) / dims.key_dim**0.5


METHOD = distance_method(
    QKRMultiplicativeAttention,
    initializer="ones",
    starts_as_none=True,
    summary="query-key products weighted per channel by a vector per distance",
    source="Huang et al. 2020, eqs. 14 and 15 (method 3)",
    logits_oracle=logits_oracle,
    equation=r"s_{ij} = \frac{1}{\sqrt{d}} \sum_{t=1}^{d} q_{i,t} \, k_{j,t} \, a_{j-i,t}",
    where={
        "q_{i,t}": "channel $t$ of the query $q_i$ of position $i$ in this head",
        "k_{j,t}": "channel $t$ of the key $k_j$ of position $j$ in this head",
        "a_{j-i,t}": "channel $t$ of the learned vector $a_{j-i}$ of the distance",
    },
    relative_step_time=(1.83, 3.28),
)
