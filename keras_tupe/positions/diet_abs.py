"""DIET-ABS: a low-rank product of free position factors per head."""

import keras
from keras import ops

from keras_tupe.layers import PositionBias
from keras_tupe.positions import additive_method, check, oracle

TABLES = ("low_rank/query_embeddings", "low_rank/key_embeddings")


@keras.saving.register_keras_serializable(package="keras_tupe")
class LowRankPositionBias(PositionBias):
    """A learned low-rank matrix of positions per head, shared by all layers.

    Equation (Chen et al. 2021, arXiv:2104.08698, DIET-ABS), unscaled:

        bias[h, i, j] = P^Q_{i, h} . P^K_{j, h}

    `rank` is the option below; the factors are normal at first, of deviation 0.02 by default.

    Differences from TUPE: no projection, no layer normalization, no scale, [CLS] tied.
    """

    kinds = ("query", "key")

    def __init__(self, num_heads, max_sequence_length, rank=64, initializer=None, **kwargs):
        super().__init__(num_heads, initializer, **kwargs)
        check.integer("max_sequence_length", max_sequence_length)
        check.integer("rank", rank)
        self.max_sequence_length, self.rank = max_sequence_length, rank

    def build(self, hidden_states_shape):
        shape = (self.max_sequence_length, self.num_heads, self.rank)
        self.query_embeddings = self.add_table("query_embeddings", shape)
        self.key_embeddings = self.add_table("key_embeddings", shape)

    def parts(self, length):
        tables = (self.query_embeddings, self.key_embeddings)
        query, key = (ops.swapaxes(ops.cast(x, self.table_dtype)[:length], 0, 1) for x in tables)
        return {"query": query, "key": key}


def _part(dims, options):
    sizes = (dims.num_heads, dims.max_sequence_length, options["rank"])
    return LowRankPositionBias(*sizes, dims.initializer(), dtype=dims.dtype, name="low_rank")


def logits_oracle(tokens, weights, dims, options):
    """s_ij = q_i . k_j / sqrt(d) + P^Q_i . P^K_j."""
    query, key = (weights[f"position_bias/{table}"] for table in TABLES)
    bias = oracle.per_pair(lambda h, i, j: query[i, h] @ key[j, h], dims.num_heads, len(tokens))
    return oracle.biased_logits(tokens, weights, dims, options, bias)


METHOD = additive_method(
    _part,
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
    option_meanings={"rank": "Size of the vectors, and so the largest rank of the bias of a head."},
    other_options=({"rank": 3},),
    tables=TABLES,
)
