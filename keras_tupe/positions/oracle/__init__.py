"""Pieces of equations in NumPy float64, for the oracles only.

Nothing here is used by a layer, and nothing here uses one: an oracle is the second, independent
writing of a paper's equation. Loops over heads and positions stand where they are nearest to it.
"""

import math

import numpy as np

__all__ = [
    "bucket",
    "bucket_bias",
    "clip",
    "cls_option",
    "content_logits",
    "distance_vectors",
    "dot_products",
    "layer_norm",
    "position_queries_and_keys",
    "queries_and_keys",
    "reset_cls",
    "softmax",
]


def queries_and_keys(tokens, weights, dims):
    """Returns q_i and k_j per head, each `(heads, length, key_dim)`.

    Args:
        tokens: vectors, `(length, hidden_dim)`.
        weights: dictionary of arrays by path.
        dims: the `Dims` of the encoder.
    """
    query = np.empty((dims.num_heads, len(tokens), dims.key_dim))
    key = np.empty_like(query)
    for h in range(dims.num_heads):
        for i, token in enumerate(tokens):
            query[h, i] = token @ weights["attention/query/kernel"][:, h]
            query[h, i] += weights["attention/query/bias"][h]
            key[h, i] = token @ weights["attention/key/kernel"][:, h]
            key[h, i] += weights["attention/key/bias"][h]
    return query, key


def dot_products(query, key):
    """Returns q_i . k_j for all heads and pairs, `(heads, length, length)`.

    Args:
        query, key: `(heads, length, key_dim)`.
    """
    heads, length, _ = query.shape
    products = np.empty((heads, length, length))
    for h in range(heads):
        for i in range(length):
            for j in range(length):
                products[h, i, j] = np.dot(query[h, i], key[h, j])
    return products


def content_logits(tokens, weights, dims, num_terms):
    """Returns q_i . k_j / sqrt(num_terms * d).

    Args:
        tokens, weights, dims: as in `queries_and_keys`.
        num_terms: number of dot products that the logits sum up.
    """
    query, key = queries_and_keys(tokens, weights, dims)
    return dot_products(query, key) / math.sqrt(num_terms * dims.key_dim)


def layer_norm(row, gamma, beta, epsilon):
    """Returns one vector, normalized.

    Args:
        row: the vector.
        gamma, beta: its scale and shift, of the same size.
        epsilon: added to the variance.
    """
    centered = row - row.mean()
    return gamma * centered / math.sqrt((centered**2).mean() + epsilon) + beta


def position_queries_and_keys(rows, weights, prefix, dims):
    """Returns LN(p) U^Q and LN(p) U^K per head, each `(heads, rows, key_dim)`.

    Args:
        rows: the vectors p, `(rows, width)`.
        weights: dictionary of arrays by path.
        prefix: beginning of the paths of U^Q, U^K and LN.
        dims: the `Dims` of the encoder.
    """
    query = np.empty((dims.num_heads, len(rows), dims.key_dim))
    key = np.empty_like(query)
    for i, row in enumerate(rows):
        normalized = layer_norm(
            row,
            weights[f"{prefix}/layer_norm/gamma"],
            weights[f"{prefix}/layer_norm/beta"],
            dims.layer_norm_epsilon,
        )
        for h in range(dims.num_heads):
            query[h, i] = normalized @ weights[f"{prefix}/query/kernel"][:, h]
            key[h, i] = normalized @ weights[f"{prefix}/key/kernel"][:, h]
            if f"{prefix}/query/bias" in weights:
                query[h, i] += weights[f"{prefix}/query/bias"][h]
                key[h, i] += weights[f"{prefix}/key/bias"][h]
    return query, key


def bucket(distance, num_buckets, max_distance, is_causal=False):
    """Returns T5's bucket of a distance, with a logarithm as it is printed.

    Args:
        distance: j - i.
        num_buckets: rows of the table.
        max_distance: from which on all distances share one bucket.
        is_causal: whether keys to the right have no buckets but that of distance 0. Defaults to
            `False`.
    """
    half = num_buckets if is_causal else num_buckets // 2
    if is_causal and distance > 0:
        return 0
    exact = half // 2
    size = abs(distance)
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
        dims: the `Dims` of the encoder.
        options: with `num_buckets` and `max_distance`.
    """
    bias = np.empty((dims.num_heads, length, length))
    for i in range(length):
        for j in range(length):
            row = bucket(j - i, options["num_buckets"], options["max_distance"], dims.is_causal)
            bias[:, i, j] = table[row]
    return bias


def reset_cls(bias, theta_1, theta_2):
    """Returns the bias with row 0 = theta_1 and the rest of column 0 = theta_2, per head.

    Args:
        bias: `(heads, length, length)`.
        theta_1, theta_2: one number per head each.
    """
    bias = bias.copy()
    for h in range(len(bias)):
        bias[h, :, 0] = theta_2[h]
        bias[h, 0, :] = theta_1[h]
    return bias


def cls_option(bias, weights, options):
    """Returns the bias, with [CLS] reset to free scalars if the options untie it.

    Args:
        bias: `(heads, length, length)`.
        weights: dictionary of arrays by path.
        options: with `cls`, `"tied"` or `"untied"`.
    """
    if options["cls"] == "tied":
        return bias
    return reset_cls(bias, *weights["position_bias/cls_reset/theta"])


def clip(distance, reach):
    """Returns a distance, at most `reach` to either side.

    Args:
        distance: j - i.
        reach: largest distance to keep.
    """
    return max(-reach, min(reach, distance))


def distance_vectors(length, weights, dims, options, signed=True):
    """Returns a_{j - i}, and [CLS]'s own vectors where they are untied, `(h, n, n, width)`.

    Args:
        length: tokens of the sequence.
        weights: dictionary of arrays by path.
        dims: the `Dims` of the encoder.
        options: with `share_layers` and `cls`.
        signed: whether left and right differ. Defaults to `True`.
    """
    prefix = "shared_positions" if options["share_layers"] else "attention/position_table"
    table = weights[f"{prefix}/distance_embeddings"]
    rows, heads, width = table.shape
    vectors = np.empty((dims.num_heads, length, length, width))
    for h, i, j in np.ndindex(vectors.shape[:3]):
        head = h if heads > 1 else 0
        if signed:
            reach = (rows - 1) // 2
            vectors[h, i, j] = table[clip(j - i, reach) + reach, head]
        else:
            vectors[h, i, j] = table[min(abs(j - i), rows - 1), head]
        if options["cls"] == "untied" and (i == 0 or j == 0):
            vectors[h, i, j] = weights[f"{prefix}/cls_embeddings"][0 if i == 0 else 1, head]
    return vectors


def softmax(logits, weights, dims, options):
    """Returns the attention scores of logits, the default of a record's `scores_oracle`.

    Args:
        logits: `(heads, length, length)`, minus infinity where a query does not see a key.
        weights, dims, options: as of `scores_oracle`, not used.
    """
    scores = np.empty_like(logits)
    for h, i in np.ndindex(logits.shape[:2]):
        row = np.exp(logits[h, i] - logits[h, i].max())
        scores[h, i] = row / row.sum()
    return scores
