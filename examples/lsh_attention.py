"""Reformer's LSH attention: a token attends to those whose vectors fall into the same bucket.

The masked form: all logits are made, and those of other buckets set far below. It is what the
paper's sorted chunks approach as they grow, and saves neither time nor memory.
"""

import dataclasses
import math

import keras
import numpy as np
from keras import ops

from keras_tupe import positions
from keras_tupe.layers import AbstractSelfAttention

OTHER_BUCKET = -(2.0**90)  # exact in float32 and float64, and above the mask of padded keys
ITSELF = -(2.0**80)  # above other buckets: what is left if no other token is in the bucket


@keras.saving.register_keras_serializable(package="examples")
class LSHAttention(AbstractSelfAttention):
    """Self-attention within buckets of a locality-sensitive hash.

    Equation (Kitaev et al. 2020, Sec. 2), with rotations R_hr of a seed fixed by the layer:

        k_j = q_j / |q_j|,   b_r(x) = argmax([x R_hr, -x R_hr])
        logits[h, i, j] = q_i . k_j / sqrt(d)  if b_r(q_i) = b_r(k_j) for one of the rounds r

    and i itself is seen only if it sees nothing else.

    Differences from the source: rounds are united, not sorted into chunks; rotations are the same
    in every call, so that answers are a function of the input.

    Args:
        num_heads, key_dim: as in `AbstractSelfAttention`.
        num_buckets: buckets of a round, an even number >= 2.
        num_rounds: rounds of hashing, >= 1.
        **kwargs: the other arguments of `AbstractSelfAttention`.
    """

    shares_projection = True

    def __init__(self, num_heads, key_dim, num_buckets=8, num_rounds=2, **kwargs):
        super().__init__(num_heads, key_dim, **kwargs)
        if num_buckets < 2 or num_buckets % 2 or num_rounds < 1:
            raise ValueError(
                "`num_buckets` must be an even integer >= 2 and `num_rounds` an integer >= 1. "
                f"Received: num_buckets={num_buckets}, num_rounds={num_rounds}"
            )
        self.num_buckets, self.num_rounds = num_buckets, num_rounds
        shape = (num_rounds, num_heads, key_dim, num_buckets // 2)
        self.rotations = np.random.default_rng(self.layer_index).normal(size=shape)

    def of_layer(self, shared_positions):
        return ops.cast(self.rotations, self.logits_dtype)[:, :, None]  # (r, h, 1, d, buckets / 2)

    def prepare(self, query, key, positions, block, is_real=None):
        lengths = ops.sqrt(ops.sum(ops.square(key), axis=-1, keepdims=True))
        of_query, of_key = (_buckets(x, positions) for x in (query, key))
        return [query, of_query], [key / ops.maximum(lengths, 1e-6), of_key]

    def logits(self, query, key, positions, block):
        (query, of_query), (key, of_key) = query, key  # buckets (h, b, n, r)
        of_key = ops.expand_dims(of_key, 2)
        is_seen = ops.any(ops.expand_dims(of_query, 3) == of_key, axis=-1)
        logits = self.products(query, key)
        logits = ops.where(is_seen, logits, ops.cast(OTHER_BUCKET, logits.dtype))
        return ops.where(block.i == block.j, ops.cast(ITSELF, logits.dtype), logits)

    def get_config(self):
        own = {"num_buckets": self.num_buckets, "num_rounds": self.num_rounds}
        return {**super().get_config(), **own}


def _buckets(vectors, rotations):
    rotated = ops.matmul(vectors, rotations)  # (r, h, b, n, buckets / 2)
    found = ops.argmax(ops.concatenate([rotated, -rotated], axis=-1), axis=-1)
    return ops.moveaxis(ops.cast(found, vectors.dtype), 0, -1)


def logits_oracle(tokens, weights, dims, options):
    """s_ij = q_i . q_j / (|q_j| sqrt(d)) if they share a bucket; far below if not, or if i = j."""
    tokens = tokens + weights["position_embedding/embeddings"][: len(tokens)]
    kernel, bias = weights["attention/query/kernel"], weights["attention/query/bias"]
    half = options["num_buckets"] // 2
    rng = np.random.default_rng(dims.layer_index)
    rotations = rng.normal(size=(options["num_rounds"], dims.num_heads, dims.key_dim, half))
    logits = np.full((dims.num_heads, len(tokens), len(tokens)), -(2.0**90))
    for h, i, j in np.ndindex(logits.shape):
        query, key = (tokens[x] @ kernel[:, h] + bias[h] for x in (i, j))
        for rotation in rotations[:, h]:
            found = [np.argmax([*(x @ rotation), *(-x @ rotation)]) for x in (query, key)]
            if found[0] == found[1]:
                logits[h, i, j] = query @ key / math.sqrt(key @ key * dims.key_dim)
        if i == j:
            logits[h, i, j] = -(2.0**80)
    return logits


METHOD = dataclasses.replace(
    positions.get("absolute"),
    summary="LSH attention: only tokens of one bucket see each other",
    source="Kitaev et al. 2020, Sec. 2 (Reformer), on learned absolute positions",
    logits_oracle=logits_oracle,
    equation=r"s_{ij} = \frac{q_i \cdot q_j}{|q_j| \sqrt{d}}"
    r" \;\text{ if }\; b_r(q_i) = b_r(q_j) \;\text{ for some }\; r",
    where={"b_r": "bucket of a query in round $r$, by a random rotation"},
    options={"num_buckets": 8, "num_rounds": 2},
    option_meanings={"num_buckets": "Buckets of a round, even.", "num_rounds": "Rounds."},
    other_options=({"num_buckets": 4}, {"num_rounds": 3}),
    attention=lambda dims, options: positions.attention(LSHAttention, dims, **options),
    dead_weights=lambda dims, options: (),
)
