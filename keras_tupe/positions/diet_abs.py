"""DIET-ABS: a low-rank product of free position factors per head."""

import keras
import numpy as np
from keras import ops

from keras_tupe.layers._checks import check_positive_integers, checked_length
from keras_tupe.layers._parts import at_least_float32, bias_spec, fresh
from keras_tupe.layers.attention.position_terms import matrix_of_parts
from keras_tupe.positions import (
    EITHER_CLS,
    DeadWeight,
    PositionMethod,
    additive_dead_weights,
    always,
    combined_bias,
    is_untied,
    memory_unless_untied,
    oracle,
)


@keras.saving.register_keras_serializable(package="keras_tupe")
class LowRankPositionBias(keras.layers.Layer):
    """A learned low-rank matrix of positions per head, shared by all layers.

    Equation (Chen et al. 2021, DIET-ABS), unscaled:

        bias[h, i, j] = P^Q_{i, h} . P^K_{j, h}

    Differences from TUPE: no projection, no layer normalization, no scale, [CLS] tied.

    Args:
        num_heads: number of attention heads.
        rank: size of the factors. Defaults to 64.
        max_sequence_length: number of positions.
        initializer: Keras initializer of both factors. Defaults to a normal of deviation 0.02.
        **kwargs: `name`, `dtype` and the other arguments of `keras.layers.Layer`.

    Call arguments:
        hidden_states: `(batch, length, hidden_dim)`; only its length is used.

    Returns:
        Position bias, unitless, `(1, num_heads, length, length)`, in at least float32.

    Masking: none; padding is masked later, in attention.

    Raises:
        ValueError: if a size is not a positive integer, or the length is known and above
            `max_sequence_length`.

    References:
        Chen et al. A Simple and Effective Positional Encoding for Transformers. EMNLP 2021.
        https://arxiv.org/abs/2104.08698
    """

    def __init__(self, num_heads, max_sequence_length, rank=64, initializer=None, **kwargs):
        super().__init__(autocast=False, **kwargs)
        check_positive_integers(
            num_heads=num_heads, max_sequence_length=max_sequence_length, rank=rank
        )
        self.num_heads = num_heads
        self.max_sequence_length = max_sequence_length
        self.rank = rank
        self.initializer = keras.initializers.get(
            keras.initializers.RandomNormal(stddev=0.02) if initializer is None else initializer
        )

    def build(self, hidden_states_shape):
        self.query_embeddings, self.key_embeddings = (
            self.add_weight(
                shape=(self.max_sequence_length, self.num_heads, self.rank),
                initializer=fresh(self.initializer),
                autocast=False,
                name=f"{side}_embeddings",
            )
            for side in ("query", "key")
        )

    def call(self, hidden_states):
        return matrix_of_parts(self.bias_parts(hidden_states), ops.shape(hidden_states)[1])

    def bias_parts(self, hidden_states):
        """Returns the bias by its factors: `query` and `key`, `(num_heads, length, rank)`.

        Args:
            hidden_states: as in the call arguments.
        """
        length = checked_length(hidden_states, self.max_sequence_length, self.name)
        dtype = at_least_float32(self.compute_dtype)
        query, key = (
            ops.swapaxes(ops.cast(table, dtype)[:length], 0, 1)
            for table in (self.query_embeddings, self.key_embeddings)
        )
        return {"query": query, "key": key}

    def compute_output_spec(self, hidden_states):
        checked_length(hidden_states, self.max_sequence_length, self.name)
        return bias_spec(self, hidden_states)

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "max_sequence_length": self.max_sequence_length,
            "rank": self.rank,
            "initializer": keras.initializers.serialize(self.initializer),
        }


def bias(dims, options):
    """Returns the low-rank bias, with [CLS] tied or untied."""
    part = LowRankPositionBias(
        dims.num_heads,
        dims.max_sequence_length,
        rank=options["rank"],
        initializer=dims.initializer(),
        dtype=dims.dtype,
        name="low_rank",
    )
    return combined_bias([part], dims, cls=options["cls"])


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


METHOD = PositionMethod(
    summary="a low-rank product of free position factors per head",
    source="Chen et al. 2021, Sec. 3 (DIET-ABS)",
    logits_oracle=logits_oracle,
    equation=r"s_{ij} = \frac{q_i \cdot k_j}{\sqrt{d}} + P^Q_i \cdot P^K_j",
    where={
        "P^Q_i": "learned vector of query position $i$, one per head, shared by all blocks, "
        "not scaled",
        "P^K_j": "learned vector of key position $j$, likewise",
    },
    options={"rank": 64, "cls": "tied"},
    option_meanings={
        "rank": "Size of the vectors, and so the largest rank of the bias of a head.",
    },
    other_options=(*EITHER_CLS, {"rank": 3}),
    bias=bias,
    dead_weights=dead_weights,
    has_length_limit=always,
    prunes_heads=True,
    absolute_tables=("low_rank/query_embeddings", "low_rank/key_embeddings"),
    refused_memory=memory_unless_untied,
)
