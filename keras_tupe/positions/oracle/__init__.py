"""Pieces of equations in NumPy float64, for the oracles only.

No layer uses them, and they use none: an oracle is the second, independent writing of a paper's
equation. Loops over heads and positions stand where they are nearest to it. `tokens`, `weights`,
`dims` and `options` are those of `PositionMethod.logits_oracle`.
"""

import math

import numpy as np

__all__ = [
    "biased_logits",
    "bucket",
    "bucket_bias",
    "clip",
    "cls_option",
    "content_logits",
    "distance_vectors",
    "dot_products",
    "layer_norm",
    "per_pair",
    "position_queries_and_keys",
    "queries_and_keys",
    "reset_cls",
    "softmax",
]


def per_pair(function, num_heads, length):
    """Returns `function(h, i, j)`, a number or vector, as `(num_heads, length, length, ...)`."""
    places = range(length)
    return np.array(
        [[[function(h, i, j) for j in places] for i in places] for h in range(num_heads)]
    )


def queries_and_keys(tokens, weights, dims):
    """Returns q_i and k_j of `tokens` by `weights` and `dims`, each `(heads, length, key_dim)`."""
    return _projections(tokens, weights, "attention", dims, has_bias=True)


def _projections(rows, weights, prefix, dims, has_bias):
    found = np.empty((2, dims.num_heads, len(rows), dims.key_dim))
    for side, name in enumerate(("query", "key")):
        for h, i in np.ndindex(dims.num_heads, len(rows)):
            found[side, h, i] = rows[i] @ weights[f"{prefix}/{name}/kernel"][:, h]
            if has_bias:
                found[side, h, i] += weights[f"{prefix}/{name}/bias"][h]
    return found


def dot_products(query, key):
    """Returns q_i . k_j of a `query` and a `key` `(heads, length, key_dim)` for all pairs."""
    return per_pair(lambda h, i, j: query[h, i] @ key[h, j], *query.shape[:2])


def content_logits(tokens, weights, dims, num_terms):
    """Returns q_i . k_j / sqrt(`num_terms` * d), where logits sum up so many dot products.

    `tokens`, `weights` and `dims` are as of `logits_oracle`.
    """
    query, key = queries_and_keys(tokens, weights, dims)
    return dot_products(query, key) / math.sqrt(num_terms * dims.key_dim)


def biased_logits(tokens, weights, dims, options, bias, num_terms=1):
    """Returns `content_logits` plus a `bias`, in which the options may reset [CLS].

    `tokens`, `weights`, `dims`, `options`, `num_terms` are as there and of `logits_oracle`.
    """
    content = content_logits(tokens, weights, dims, num_terms)
    return content + cls_option(bias, weights, options)


def layer_norm(row, gamma, beta, epsilon):
    """Returns `gamma * (row - mean) / sqrt(variance + epsilon) + beta` of one vector."""
    centered = row - row.mean()
    return gamma * centered / math.sqrt((centered**2).mean() + epsilon) + beta


def position_queries_and_keys(rows, weights, prefix, dims):
    """Returns LN(p) U^Q and LN(p) U^K per head, each `(heads, rows, key_dim)`.

    The vectors p are `rows` `(rows, width)`, and the paths in `weights` begin with `prefix`; `dims`
    as of `logits_oracle`.
    """
    gamma, beta = (weights[f"{prefix}/layer_norm/{name}"] for name in ("gamma", "beta"))
    rows = [layer_norm(row, gamma, beta, dims.layer_norm_epsilon) for row in rows]
    return _projections(rows, weights, prefix, dims, f"{prefix}/query/bias" in weights)


def bucket(distance, num_buckets, max_distance, is_causal=False):
    """Returns T5's bucket of a `distance` j - i, with a logarithm as it is printed.

    From `max_distance` on all share the last of `num_buckets`; with `is_causal` keys to the right
    have the bucket of distance 0.
    """
    half = num_buckets if is_causal else num_buckets // 2
    if is_causal and distance > 0:
        return 0
    exact, size = half // 2, abs(distance)
    if size >= exact:
        ratio = math.log(size / exact) / math.log(max_distance / exact)
        # The rounding undoes the last bit of the logarithm where the quotient is a whole number.
        size = min(half - 1, exact + math.floor(round(ratio * (half - exact), 9)))
    return size + (half if distance > 0 else 0)


def bucket_bias(length, table, dims, options):
    """Returns b[bucket(j - i)] per head, `(heads, length, length)`, by `dims` and `options`.

    The b are a `table` `(num_buckets, heads)`.
    """
    sizes = options["num_buckets"], options["max_distance"], dims.is_causal
    return per_pair(lambda h, i, j: table[bucket(j - i, *sizes), h], dims.num_heads, length)


def reset_cls(bias, theta_1, theta_2):
    """Returns a `bias` with row 0 = `theta_1` and the rest of column 0 = `theta_2`, per head."""
    bias = bias.copy()
    for h, thetas in enumerate(zip(theta_1, theta_2, strict=True)):
        bias[h, 0, :], bias[h, 1:, 0] = thetas
    return bias


def cls_option(bias, weights, options):
    """Returns a `bias`, with [CLS] reset to scalars of `weights` if the `options` untie it."""
    if options["cls"] == "tied":
        return bias
    return reset_cls(bias, *weights["position_bias/cls_reset/theta"])


def clip(distance, reach):
    """Returns a `distance`, at most `reach` to either side."""
    return max(-reach, min(reach, distance))


def distance_vectors(length, weights, dims, options, signed=True):
    """Returns a_{j - i}, and [CLS]'s own vectors where they are untied, `(h, n, n, width)`.

    For `length` tokens; `signed` says whether left and right differ; `weights`, `dims`, `options`
    as of `logits_oracle`.
    """
    prefix = "shared_positions" if options["share_layers"] else "attention/position_table"
    table = weights[f"{prefix}/distance_embeddings"]
    rows, heads, _ = table.shape

    def vector(h, i, j):
        head = h if heads > 1 else 0
        if options["cls"] == "untied" and (i == 0 or j == 0):
            return weights[f"{prefix}/cls_embeddings"][0 if i == 0 else 1, head]
        reach = (rows - 1) // 2
        return table[clip(j - i, reach) + reach if signed else min(abs(j - i), rows - 1), head]

    return per_pair(vector, dims.num_heads, length)


def softmax(logits, weights, dims, options):
    """Returns the softmax of `logits`, a `scores_oracle` without `weights`, `dims`, `options`."""
    scores = np.empty_like(logits)
    for h, i in np.ndindex(logits.shape[:2]):
        row = np.exp(logits[h, i] - logits[h, i].max())
        scores[h, i] = row / row.sum()
    return scores
