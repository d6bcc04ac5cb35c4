"""DIET-ABS: a low-rank product of free position factors per head."""

import keras
import numpy as np
from keras import ops

from keras_tupe.layers import PositionBias
from keras_tupe.positions import (
    DeadWeight,
    additive_dead_weights,
    additive_method,
    always,
    check,
    is_untied,
    oracle,
)


@keras.saving.register_keras_serializable(package="keras_tupe")
class LowRankPositionBias(PositionBias):
    """A learned low-rank matrix of positions per head, shared by all layers.

    Equation (Chen et al. 2021, DIET-ABS), unscaled:

        bias[h, i, j] = P^Q_{i, h} . P^K_{j, h}

    Differences from TUPE: no projection, no layer normalization, no scale, [CLS] tied.

    Args:
        num_heads: number of attention heads.
        rank: size of the factors. Defaults to 64.
        max_sequence_length: number of positions.
        initializer: Keras initializer of both factors. Defaults to a normal of deviation 0.02.
        **kwargs: as of `PositionBias`, like the call arguments and the answer.

    Raises:
        ValueError: if a size is not a positive integer, or the length is known and above
            `max_sequence_length`.

    References:
        Chen et al. A Simple and Effective Positional Encoding for Transformers. EMNLP 2021.
        https://arxiv.org/abs/2104.08698
    """

    kinds = ("query", "key")

    def __init__(self, num_heads, max_sequence_length, rank=64, initializer=None, **kwargs):
        super().__init__(num_heads, initializer, **kwargs)
        check.integer("max_sequence_length", max_sequence_length)
        check.integer("rank", rank)
        self.max_sequence_length = max_sequence_length
        self.rank = rank

    def build(self, hidden_states_shape):
        shape = (self.max_sequence_length, self.num_heads, self.rank)
        self.query_embeddings = self.add_table("query_embeddings", shape)
        self.key_embeddings = self.add_table("key_embeddings", shape)

    def parts(self, length):
        tables = {"query": self.query_embeddings, "key": self.key_embeddings}
        return {
            side: ops.swapaxes(ops.cast(table, self.table_dtype)[:length], 0, 1)
            for side, table in tables.items()
        }


def part(dims, options):
    """Returns the low-rank bias."""
    return LowRankPositionBias(
        dims.num_heads,
        dims.max_sequence_length,
        rank=options["rank"],
        initializer=dims.initializer(),
        dtype=dims.dtype,
        name="low_rank",
    )


def dead_weights(dims, options):
    """Returns the weights without a gradient."""
    records = additive_dead_weights(dims, options)
    if is_untied(options["cls"]):
        reason = "[CLS] has theta in its place"
        records += tuple(
            DeadWeight(f"low_rank/{side}_embeddings", reason, row=0) for side in ("query", "key")
        )
    return records


def logits_oracle(tokens, weights, dims, options):
    """s_ij = q_i . k_j / sqrt(d) + P^Q_i . P^K_j."""
    query = weights["position_bias/low_rank/query_embeddings"]
    key = weights["position_bias/low_rank/key_embeddings"]
    added = np.empty((dims.num_heads, len(tokens), len(tokens)))
    for h, i, j in np.ndindex(added.shape):
        added[h, i, j] = np.dot(query[i, h], key[j, h])
    content = oracle.content_logits(tokens, weights, dims, num_terms=1)
    return content + oracle.cls_option(added, weights, options)


METHOD = additive_method(
    part,
    summary="a low-rank product of free position factors per head",
    source="Chen et al. 2021, Sec. 3 (DIET-ABS)",
    logits_oracle=logits_oracle,
    equation=r"s_{ij} = \frac{q_i \cdot k_j}{\sqrt{d}} + P^Q_i \cdot P^K_j",
    where={
        "P^Q_i": "learned vector of query position $i$, one per head, shared by all blocks, "
        "not scaled",
        "P^K_j": "learned vector of key position $j$, likewise",
    },
    options={"rank": 64},
    option_meanings={
        "rank": "Size of the vectors, and so the largest rank of the bias of a head.",
    },
    other_options=({"rank": 3},),
    dead_weights=dead_weights,
    has_length_limit=always,
    absolute_tables=("low_rank/query_embeddings", "low_rank/key_embeddings"),
)
