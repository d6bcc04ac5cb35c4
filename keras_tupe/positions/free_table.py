"""TUPE's failed attempt: a free table of all pairs of positions."""

import keras
from keras import ops

from keras_tupe.layers import PositionBias, UntiedPositionalAttention
from keras_tupe.positions import additive_method, attention, check, oracle

PER_PAIR = "its table has a number for every pair of positions"


@keras.saving.register_keras_serializable(package="keras_tupe")
class FreeTableBias(PositionBias):
    """A learned logit per head and pair of positions, shared by all layers.

    Equation (Ke et al. 2021, arXiv:2006.15595, the failed attempts of the appendix), unscaled:

        bias[h, i, j] = B[i, j, h]

    Differences from the source: none known; the paper gives no formula.
    """

    kinds = ("matrix",)

    def __init__(self, num_heads, max_sequence_length, initializer=None, **kwargs):
        super().__init__(num_heads, initializer, **kwargs)
        check.integer("max_sequence_length", max_sequence_length)
        self.max_sequence_length = max_sequence_length

    def build(self, hidden_states_shape):
        shape = (self.max_sequence_length, self.max_sequence_length, self.num_heads)
        self.embeddings = self.add_table("embeddings", shape, self.initializer)

    def parts(self, length):
        table = ops.cast(self.embeddings, self.table_dtype)
        table = ops.slice(table, (0, 0, 0), (length, length, self.num_heads))
        return {"matrix": ops.transpose(table, (2, 0, 1))}


def logits_oracle(tokens, weights, dims, options):
    """s_ij = q_i . k_j / sqrt(2d) + reset(B_ij)."""
    length = len(tokens)
    bias = weights["position_bias/table/embeddings"][:length, :length].transpose(2, 0, 1)
    return oracle.biased_logits(tokens, weights, dims, options, bias, num_terms=2)


METHOD = additive_method(
    lambda dims, options: FreeTableBias(
        dims.num_heads, dims.max_sequence_length, dims.initializer(), dtype=dims.dtype, name="table"
    ),
    summary="a free learned scalar per head and pair of positions",
    source="Ke et al. 2021, appendix (failed attempts)",
    logits_oracle=logits_oracle,
    equation=r"s_{ij} = \frac{q_i \cdot k_j}{\sqrt{2d}} + \mathrm{reset}_\theta(B_{ij})",
    where={
        "B_{ij}": "learned scalar per head and pair of positions, shared by all blocks, not scaled"
    },
    options={"cls": "untied"},
    attention=lambda dims, options: attention(UntiedPositionalAttention, dims),
    tables=("table/embeddings",),
    absolute_tables=(),  # a longer one would need columns, too
    refused_patterns={"sliding_window": f"{PER_PAIR}, so that a window would save nothing"},
    refused_memory=lambda options: f"{PER_PAIR}, most of which no segment would read",
)
