"""Pieces of equations in NumPy float64, for the oracles only.

No layer uses them, and they use none: an oracle is the second, independent writing of a paper's
equation. Loops over heads and positions stand where they are nearest to it. Most pieces take the
arguments of `PositionMethod.logits_oracle`.
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
    """Returns `function(h, i, j)` for all heads and pairs, `(num_heads, length, length)`.

    Args:
        function: (head, query position, key position) -> number, or vector, which is a last axis.
        num_heads, length: numbers of heads and of positions.
    """
    places = range(length)
    return np.array(
        [[[function(h, i, j) for j in places] for i in places] for h in range(num_heads)]
    )


def queries_and_keys(tokens, weights, dims):
    """Returns q_i and k_j per head, each `(heads, length, key_dim)`.

    Args:
        tokens, weights, dims: as of `logits_oracle`.
    """
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
    """Returns q_i . k_j for all heads and pairs, `(heads, length, length)`.

    Args:
        query, key: `(heads, length, key_dim)`.
    """
    return per_pair(lambda h, i, j: query[h, i] @ key[h, j], *query.shape[:2])


def content_logits(tokens, weights, dims, num_terms):
    """Returns q_i . k_j / sqrt(num_terms * d).

    Args:
        tokens, weights, dims: as of `logits_oracle`.
        num_terms: number of dot products that the logits sum up.
    """
    query, key = queries_and_keys(tokens, weights, dims)
    return dot_products(query, key) / math.sqrt(num_terms * dims.key_dim)


def biased_logits(tokens, weights, dims, options, bias, num_terms=1):
    """Returns content logits plus a bias, in which the options may reset [CLS].

    Args:
        tokens, weights, dims, options: as of `logits_oracle`.
        bias: `(heads, length, length)`.
        num_terms: as of `content_logits`.
    """
    content = content_logits(tokens, weights, dims, num_terms)
    return content + cls_option(bias, weights, options)


def layer_norm(row, gamma, beta, epsilon):
    """Returns one vector, normalized.

    Args:
        row, gamma, beta: the vector, its scale and its shift, of one size.
        epsilon: added to the variance.
    """
    centered = row - row.mean()
    return gamma * centered / math.sqrt((centered**2).mean() + epsilon) + beta


def position_queries_and_keys(rows, weights, prefix, dims):
    """Returns LN(p) U^Q and LN(p) U^K per head, each `(heads, rows, key_dim)`.

    Args:
        rows: the vectors p, `(rows, width)`.
        weights, dims: as of `logits_oracle`.
        prefix: beginning of the paths of U^Q, U^K and LN.
    """
    gamma, beta = (weights[f"{prefix}/layer_norm/{name}"] for name in ("gamma", "beta"))
    rows = [layer_norm(row, gamma, beta, dims.layer_norm_epsilon) for row in rows]
    return _projections(rows, weights, prefix, dims, f"{prefix}/query/bias" in weights)


def bucket(distance, num_buckets, max_distance, is_causal=False):
    """Returns T5's bucket of a distance, with a logarithm as it is printed.

    Args:
        distance: j - i.
        num_buckets: rows of the table.
        max_distance: from which on all distances share one bucket.
        is_causal: whether keys to the right have the bucket of distance 0.
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
    """Returns b[bucket(j - i)] per head, `(heads, length, length)`.

    Args:
        length: tokens of the sequence.
        table: the b, `(num_buckets, heads)`.
        dims, options: as of `logits_oracle`.
    """
    sizes = options["num_buckets"], options["max_distance"], dims.is_causal
    return per_pair(lambda h, i, j: table[bucket(j - i, *sizes), h], dims.num_heads, length)


def reset_cls(bias, theta_1, theta_2):
    """Returns the bias with row 0 = theta_1 and the rest of column 0 = theta_2, per head.

    Args:
        bias: `(heads, length, length)`.
        theta_1, theta_2: one number per head each.
    """
    bias = bias.copy()
    for h, thetas in enumerate(zip(theta_1, theta_2, strict=True)):
        bias[h, 0, :], bias[h, 1:, 0] = thetas
    return bias


def cls_option(bias, weights, options):
    """Returns the bias, with [CLS] reset to free scalars if the options untie it.

    Args:
        bias: `(heads, length, length)`.
        weights, options: as of `logits_oracle`.
    """
    if options["cls"] == "tied":
        return bias
    return reset_cls(bias, *weights["position_bias/cls_reset/theta"])


def clip(distance, reach):
    """Returns a distance, at most `reach` to either side.

    Args:
        distance, reach: j - i, and the largest distance to keep.
    """
    return max(-reach, min(reach, distance))


def distance_vectors(length, weights, dims, options, signed=True):
    """Returns a_{j - i}, and [CLS]'s own vectors where they are untied, `(h, n, n, width)`.

    Args:
        length: tokens of the sequence.
        weights, dims, options: as of `logits_oracle`.
        signed: whether left and right differ.
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
    """Returns the attention scores of logits, the default of a record's `scores_oracle`.

    Args:
        logits, weights, dims, options: as of `scores_oracle`.
    """
    scores = np.empty_like(logits)
    for h, i in np.ndindex(logits.shape[:2]):
        row = np.exp(logits[h, i] - logits[h, i].max())
        scores[h, i] = row / row.sum()
    return scores
