"""TUPE-R: untied absolute positions plus T5's relative bias, [CLS] untied."""

import dataclasses

from keras_tupe.positions import DeadWeight, combined_bias, oracle, t5, tupe_a


def bias(dims, options):
    """Returns the position bias of eq. 11.

    The paper resets the sum of both parts with TUPE-A's theta. The released code resets each part
    alone: the absolute one with theta, the relative one with two free scalars per head (rows 16
    and 32 of its table).
    """
    absolute, relative = tupe_a.untied_part(dims, options), t5.bucket_part(dims, options)
    if options["variant"] == "released" and options["cls"] == "untied":
        absolute = combined_bias([absolute], dims, cls="untied", name="absolute_reset")
        relative = combined_bias([relative], dims, cls="untied", name="relative_reset")
        return combined_bias([absolute, relative], dims)
    return combined_bias([absolute, relative], dims, cls=options["cls"])


def dead_weights(dims, options):
    """Returns the weights without a gradient."""
    relative = t5.dead_weights(dims, {**options, "cls": "tied"})  # TUPE-A's theta is used
    records = [*relative, *tupe_a.dead_weights(dims, options)]
    if options["cls"] == "untied" and options["variant"] == "released":
        row = "it fills row 0 of the logits with one constant, which softmax ignores"
        records.append(DeadWeight("relative_reset/cls_reset/theta", row, row=0))
    return tuple(dict.fromkeys(records))


def logits_oracle(tokens, weights, dims, options):
    """s_ij = q_i . k_j / sqrt(2d) + reset((p_i U^Q) . (p_j U^K) / sqrt(2d) + b[bucket(j - i)])."""
    content = oracle.content_logits(tokens, weights, dims, num_terms=2)
    if options["variant"] == "released" and options["cls"] == "untied":
        return content + _released_bias(len(tokens), weights, dims, options)
    correlation, theta = tupe_a.correlation_oracle(len(tokens), weights, dims, options)
    table = weights["position_bias/relative/embeddings"]
    both = correlation + oracle.bucket_bias(len(tokens), table, dims, options)
    return content + (both if theta is None else oracle.reset_cls(both, *theta))


def _released_bias(length, weights, dims, options):
    """reset(correlation) + reset(b), each with a theta of its own."""
    inner = {name.replace("/absolute_reset", ""): value for name, value in weights.items()}
    correlation, theta = tupe_a.correlation_oracle(length, inner, dims, options)
    table = weights["position_bias/relative_reset/relative/embeddings"]
    relative = oracle.bucket_bias(length, table, dims, options)
    free = weights["position_bias/relative_reset/cls_reset/theta"]
    return oracle.reset_cls(correlation, *theta) + oracle.reset_cls(relative, *free)


METHOD = dataclasses.replace(
    tupe_a.METHOD,
    summary="untied absolute positions plus T5's relative bias, [CLS] untied",
    source="Ke et al. 2021, eq. 11 (TUPE-R)",
    logits_oracle=logits_oracle,
    equation=(
        r"s_{ij} = \frac{q_i \cdot k_j}{\sqrt{2d}} + \mathrm{reset}_\theta\left("
        r"\frac{\mathrm{LN}(p_i) U^Q \cdot \mathrm{LN}(p_j) U^K}{\sqrt{2d}} "
        r"+ b_{\mathrm{bucket}(j - i)}\right)"
    ),
    where={**tupe_a.METHOD.where, **t5.METHOD.where},
    options={**t5.METHOD.options, **tupe_a.METHOD.options},
    option_meanings=t5.METHOD.option_meanings,
    other_options=(*tupe_a.METHOD.other_options, *t5.METHOD.other_options),
    bias=bias,
    dead_weights=dead_weights,
)
