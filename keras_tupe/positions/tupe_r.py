"""TUPE-R: untied absolute positions plus T5's relative bias, [CLS] untied."""

import dataclasses

from keras_tupe.positions import THETA_ROW, combined_bias, oracle, t5, tupe_a


def _bias(dims, options):
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


def _dead_weights(dims, options):
    relative = t5.METHOD.dead_weights(dims, {**options, "cls": "tied"})  # TUPE-A's theta is used
    records = [*relative, *tupe_a.METHOD.dead_weights(dims, options)]
    if options["cls"] == "untied" and options["variant"] == "released":
        records.append(THETA_ROW)  # of the relative part
    return tuple(dict.fromkeys(records))


def logits_oracle(tokens, weights, dims, options):
    """s_ij = q_i . k_j / sqrt(2d) + reset((p_i U^Q) . (p_j U^K) / sqrt(2d) + b[bucket(j - i)])."""
    is_apart = options["variant"] == "released" and options["cls"] == "untied"
    prefix = "position_bias/relative_reset" if is_apart else "position_bias"
    table = weights[f"{prefix}/relative/embeddings"]
    relative = oracle.bucket_bias(len(tokens), table, dims, options)
    if not is_apart:
        return tupe_a.logits_oracle(tokens, weights, dims, options, relative)
    # reset(correlation) + reset(b), each with a theta of its own
    inner = {name.replace("/absolute_reset", ""): value for name, value in weights.items()}
    relative = oracle.reset_cls(relative, *weights[f"{prefix}/cls_reset/theta"])
    return tupe_a.logits_oracle(tokens, inner, dims, options) + relative


METHOD = dataclasses.replace(
    tupe_a.METHOD,
    summary="untied absolute positions plus T5's relative bias, [CLS] untied",
    source="Ke et al. 2021, eq. 11 (TUPE-R)",
    logits_oracle=logits_oracle,
    equation=r"s_{ij} = \frac{q_i \cdot k_j}{\sqrt{2d}} + \mathrm{reset}_\theta\left("
    r"\frac{\mathrm{LN}(p_i) U^Q \cdot \mathrm{LN}(p_j) U^K}{\sqrt{2d}} "
    r"+ b_{\mathrm{bucket}(j - i)}\right)",
    where={**tupe_a.METHOD.where, **t5.METHOD.where},
    options={**t5.METHOD.options, **tupe_a.METHOD.options},
    option_meanings=t5.METHOD.option_meanings,
    other_options=(*tupe_a.METHOD.other_options, *t5.METHOD.other_options),
    bias=_bias,
    dead_weights=_dead_weights,
)
