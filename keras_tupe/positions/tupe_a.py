"""TUPE-A: untied absolute positions, [CLS] untied."""

from keras_tupe.layers import UntiedPositionalAttention, UntiedPositionBias
from keras_tupe.positions import (
    KEY_BIAS,
    THETA_ROW,
    DeadWeight,
    additive_method,
    attention,
    is_released,
    oracle,
)

TABLE = "untied/projection/embeddings"


def untied_part(dims, options):
    """Returns the absolute position correlation as a part of a sum."""
    sizes = (dims.num_heads, dims.key_dim, dims.max_sequence_length)
    given = {"cls_theta": options["cls"] == "untied", "use_bias": is_released(options["variant"])}
    given |= {"epsilon": dims.layer_norm_epsilon, "initializer": dims.initializer()}
    given |= {"width": dims.hidden_dim, "dtype": dims.dtype, "name": "untied"}
    return UntiedPositionBias(*sizes, **given)


def _dead_weights(dims, options):
    if options["cls"] == "untied":
        table = DeadWeight(TABLE, "[CLS] has theta in its place", row=0)
        return KEY_BIAS, table, DeadWeight("untied/cls_embeddings", THETA_ROW.reason, row=0)
    constant = "adds (p_i U^Q) . b to the whole row i of the logits, which softmax ignores"
    bias = DeadWeight("untied/projection/key/bias", constant)
    return (KEY_BIAS, bias) if is_released(options["variant"]) else (KEY_BIAS,)


def correlation_oracle(length, weights, dims, options):
    """Returns (p_i U^Q) . (p_j U^K) / sqrt(2 d), and theta_1, theta_2 where they exist."""
    prefix, scale = "position_bias/untied", (2 * dims.key_dim) ** 0.5
    rows = weights[f"{prefix}/projection/embeddings"][:length]
    query, key = oracle.position_queries_and_keys(rows, weights, f"{prefix}/projection", dims)
    correlation = oracle.dot_products(query, key) / scale
    if options["cls"] == "tied":
        return correlation, None
    thetas = weights[f"{prefix}/cls_embeddings"]
    query, key = oracle.position_queries_and_keys(thetas, weights, f"{prefix}/projection", dims)
    return correlation, (query * key).sum(axis=-1).T / scale


def logits_oracle(tokens, weights, dims, options, relative=0):
    """s_ij = q_i . k_j / sqrt(2d) + reset((p_i U^Q) . (p_j U^K) / sqrt(2d) + relative_ij)."""
    correlation, theta = correlation_oracle(len(tokens), weights, dims, options)
    bias = correlation + relative
    bias = bias if theta is None else oracle.reset_cls(bias, *theta)
    return oracle.content_logits(tokens, weights, dims, num_terms=2) + bias


METHOD = additive_method(
    untied_part,
    summary="untied absolute positions, [CLS] untied",
    source="Ke et al. 2021, eq. 10 (TUPE-A)",
    logits_oracle=logits_oracle,
    equation=r"s_{ij} = \frac{q_i \cdot k_j}{\sqrt{2d}} + \mathrm{reset}_\theta\left("
    r"\frac{\mathrm{LN}(p_i) U^Q \cdot \mathrm{LN}(p_j) U^K}{\sqrt{2d}}\right)",
    where={
        r"\theta_1": "logit from [CLS] to every token, one per head: "
        r"$\theta_k = \mathrm{LN}(t_k) U^Q \cdot \mathrm{LN}(t_k) U^K / \sqrt{2d}$ with a learned "
        "vector $t_k$",
        r"\theta_2": "the same from every other token to [CLS]",
    },
    options={"variant": "paper", "cls": "untied"},
    other_options=({"variant": "released"},),
    attention=lambda dims, options: attention(UntiedPositionalAttention, dims),
    dead_weights=_dead_weights,
    tables=(TABLE,),
)
