"""TUPE-A: untied absolute positions, [CLS] untied."""

import math

import numpy as np

from keras_tupe.layers import UntiedPositionalAttention, UntiedPositionBias
from keras_tupe.positions import (
    EITHER_CLS,
    KEY_BIAS,
    DeadWeight,
    PositionMethod,
    always,
    attention,
    combined_bias,
    is_released,
    memory_unless_untied,
    oracle,
)


def untied_part(dims, options):
    """Returns the absolute position correlation as a part of a sum."""
    return UntiedPositionBias(
        dims.num_heads,
        dims.key_dim,
        dims.max_sequence_length,
        cls_theta=options["cls"] == "untied",
        use_bias=is_released(options["variant"]),
        epsilon=dims.layer_norm_epsilon,
        initializer=dims.initializer(),
        width=dims.hidden_dim,
        dtype=dims.dtype,
        name="untied",
    )


def bias(dims, options):
    """Returns the position bias of eq. 10."""
    return combined_bias([untied_part(dims, options)], dims, cls=options["cls"])


def untied_attention(dims, options):
    """Returns the attention whose logits are scaled for two terms."""
    return attention(UntiedPositionalAttention, dims)


def dead_weights(dims, options):
    """Returns the weights without a gradient."""
    records = [KEY_BIAS]
    if options["cls"] == "untied":
        row = "it fills row 0 of the logits with one constant, which softmax ignores"
        records += [
            DeadWeight("untied/projection/embeddings", "[CLS] has theta in its place", row=0),
            DeadWeight("untied/cls_embeddings", row, row=0),
        ]
    if options["variant"] == "released" and options["cls"] == "tied":
        constant = "adds (p_i U^Q) . b to the whole row i of the logits, which softmax ignores"
        records.append(DeadWeight("untied/projection/key/bias", constant))
    return tuple(records)


def correlation_oracle(length, weights, dims, options):
    """Returns (p_i U^Q) . (p_j U^K) / sqrt(2 d), and theta_1, theta_2 where they exist."""
    prefix, scale = "position_bias/untied", math.sqrt(2 * dims.key_dim)
    rows = weights[f"{prefix}/projection/embeddings"][:length]
    query, key = oracle.position_queries_and_keys(rows, weights, f"{prefix}/projection", dims)
    correlation = oracle.dot_products(query, key) / scale
    if options["cls"] == "tied":
        return correlation, None
    thetas = weights[f"{prefix}/cls_embeddings"]
    query, key = oracle.position_queries_and_keys(thetas, weights, f"{prefix}/projection", dims)
    return correlation, np.array(
        [[query[h, k] @ key[h, k] / scale for h in range(dims.num_heads)] for k in (0, 1)]
    )


def logits_oracle(tokens, weights, dims, options):
    """s_ij = q_i . k_j / sqrt(2d) + reset((p_i U^Q) . (p_j U^K) / sqrt(2d))."""
    correlation, theta = correlation_oracle(len(tokens), weights, dims, options)
    if theta is not None:
        correlation = oracle.reset_cls(correlation, *theta)
    return oracle.content_logits(tokens, weights, dims, num_terms=2) + correlation


METHOD = PositionMethod(
    summary="untied absolute positions, [CLS] untied",
    source="Ke et al. 2021, eq. 10 (TUPE-A)",
    logits_oracle=logits_oracle,
    equation=(
        r"s_{ij} = \frac{q_i \cdot k_j}{\sqrt{2d}} + \mathrm{reset}_\theta\left("
        r"\frac{\mathrm{LN}(p_i) U^Q \cdot \mathrm{LN}(p_j) U^K}{\sqrt{2d}}\right)"
    ),
    where={
        r"\theta_1": "logit from [CLS] to every token, one per head: "
        r"$\theta_k = \mathrm{LN}(t_k) U^Q \cdot \mathrm{LN}(t_k) U^K / \sqrt{2d}$ with a learned "
        "vector $t_k$",
        r"\theta_2": "the same from every other token to [CLS]",
    },
    options={"variant": "paper", "cls": "untied"},
    other_options=({"variant": "released"}, *EITHER_CLS),
    bias=bias,
    attention=untied_attention,
    dead_weights=dead_weights,
    has_length_limit=always,
    prunes_heads=True,
    absolute_tables=("untied/projection/embeddings",),
    refused_memory=memory_unless_untied,
)
