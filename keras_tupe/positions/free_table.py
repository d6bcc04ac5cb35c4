"""TUPE's failed attempt: a free table of all pairs of positions."""

import keras
from keras import ops

from keras_tupe.layers import PositionBias, UntiedPositionalAttention
from keras_tupe.positions import (
    DeadWeight,
    additive_dead_weights,
    additive_method,
    always,
    attention,
    check,
    is_untied,
    oracle,
)


@keras.saving.register_keras_serializable(package="keras_tupe")
class FreeTableBias(PositionBias):
    """A learned logit per head and pair of positions, shared by all layers.

    Equation (Ke et al. 2021, the failed attempts of the appendix), unscaled:

        bias[h, i, j] = B[i, j, h]

    Differences from the source: none known; the paper gives no formula.

    Args:
        num_heads: number of attention heads.
        max_sequence_length: rows and columns of the table.
        initializer: Keras initializer. Defaults to a normal of deviation 0.02.
        **kwargs: as of `PositionBias`, like the call arguments and the answer.

    Raises:
        ValueError: if a size is not a positive integer, or the length is known and above
            `max_sequence_length`.

    References:
        Ke, He, Liu. Rethinking Positional Encoding in Language Pre-training. ICLR 2021.
        https://arxiv.org/abs/2006.15595
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


def part(dims, options):
    """Returns the table."""
    return FreeTableBias(
        dims.num_heads,
        dims.max_sequence_length,
        initializer=dims.initializer(),
        dtype=dims.dtype,
        name="table",
    )


def dead_weights(dims, options):
    """Returns the weights without a gradient."""
    records = additive_dead_weights(dims, options)
    if is_untied(options["cls"]):
        records += (DeadWeight("table/embeddings", "[CLS] has theta in its place", row=0),)
    return records


def logits_oracle(tokens, weights, dims, options):
    """s_ij = q_i . k_j / sqrt(2d) + reset(B_ij)."""
    length = len(tokens)
    added = weights["position_bias/table/embeddings"][:length, :length].transpose(2, 0, 1)
    content = oracle.content_logits(tokens, weights, dims, num_terms=2)
    return content + oracle.cls_option(added, weights, options)


METHOD = additive_method(
    part,
    summary="a free learned scalar per head and pair of positions",
    source="Ke et al. 2021, appendix (failed attempts)",
    logits_oracle=logits_oracle,
    equation=(
        r"s_{ij} = \frac{q_i \cdot k_j}{\sqrt{2d}} "
        r"+ \mathrm{reset}_\theta(B_{ij})"
    ),
    where={
        "B_{ij}": "learned scalar per head and pair of positions, shared by all blocks, not scaled",
    },
    options={"cls": "untied"},
    attention=lambda dims, options: attention(UntiedPositionalAttention, dims),
    dead_weights=dead_weights,
    has_length_limit=always,
    refused_patterns={
        "sliding_window": "its table has a number for every pair of positions, so that a window "
        "would save nothing"
    },
    refused_memory=lambda options: (
        "its table has a number for every pair of positions, most of which no segment would read"
    ),
)
