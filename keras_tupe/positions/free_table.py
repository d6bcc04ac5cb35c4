"""TUPE's failed attempt: a free table of all pairs of positions."""

import keras
from keras import ops

from keras_tupe.layers import UntiedPositionalAttention
from keras_tupe.layers._checks import check_positive_integers, checked_length
from keras_tupe.layers._parts import at_least_float32, bias_spec
from keras_tupe.positions import (
    EITHER_CLS,
    DeadWeight,
    PositionMethod,
    additive_dead_weights,
    always,
    attention,
    combined_bias,
    is_untied,
    oracle,
)


@keras.saving.register_keras_serializable(package="keras_tupe")
class FreeTableBias(keras.layers.Layer):
    """A learned logit per head and pair of positions, shared by all layers.

    Equation (Ke et al. 2021, the failed attempts of the appendix), unscaled:

        bias[h, i, j] = B[i, j, h]

    Differences from the source: none known; the paper gives no formula.

    Args:
        num_heads: number of attention heads.
        max_sequence_length: rows and columns of the table.
        initializer: Keras initializer. Defaults to a normal of deviation 0.02.
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
        Ke, He, Liu. Rethinking Positional Encoding in Language Pre-training. ICLR 2021.
        https://arxiv.org/abs/2006.15595
    """

    def __init__(self, num_heads, max_sequence_length, initializer=None, **kwargs):
        super().__init__(autocast=False, **kwargs)
        check_positive_integers(num_heads=num_heads, max_sequence_length=max_sequence_length)
        self.num_heads = num_heads
        self.max_sequence_length = max_sequence_length
        self.initializer = keras.initializers.get(
            keras.initializers.RandomNormal(stddev=0.02) if initializer is None else initializer
        )

    def build(self, hidden_states_shape):
        self.embeddings = self.add_weight(
            shape=(self.max_sequence_length, self.max_sequence_length, self.num_heads),
            initializer=self.initializer,
            autocast=False,
            name="embeddings",
        )

    def call(self, hidden_states):
        length = checked_length(hidden_states, self.max_sequence_length, self.name)
        table = ops.cast(self.embeddings, at_least_float32(self.compute_dtype))
        table = ops.slice(table, (0, 0, 0), (length, length, self.num_heads))
        return ops.expand_dims(ops.transpose(table, (2, 0, 1)), 0)

    def compute_output_spec(self, hidden_states):
        checked_length(hidden_states, self.max_sequence_length, self.name)
        return bias_spec(self, hidden_states)

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "max_sequence_length": self.max_sequence_length,
            "initializer": keras.initializers.serialize(self.initializer),
        }


def bias(dims, options):
    """Returns the table, with [CLS] tied or untied."""
    table = FreeTableBias(
        dims.num_heads,
        dims.max_sequence_length,
        initializer=dims.initializer(),
        dtype=dims.dtype,
        name="table",
    )
    return combined_bias([table], dims, cls=options["cls"])


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


METHOD = PositionMethod(
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
    other_options=EITHER_CLS,
    bias=bias,
    attention=lambda dims, options: attention(UntiedPositionalAttention, dims),
    dead_weights=dead_weights,
    has_length_limit=always,
    prunes_heads=True,
    refused_patterns={
        "sliding_window": "its table has a number for every pair of positions, so that a window "
        "would save nothing"
    },
    refused_memory=lambda options: (
        "its table has a number for every pair of positions, most of which no segment would read"
    ),
)
