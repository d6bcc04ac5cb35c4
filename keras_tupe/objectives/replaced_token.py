"""Replaced tokens: a generator fills masked slots, and which tokens it replaced is predicted."""

import dataclasses

from keras_tupe.models import (
    ReplacedTokenAccuracy,
    TupeBackbone,
    TupeReplacedTokenDetector,
)
from keras_tupe.objectives import Output, masked_lm_flops
from keras_tupe.objectives.masked_lm import OBJECTIVE as MASKED_LM


def _rule(rows, options):
    return rows.replaced_tokens(MASKED_LM.rule(rows, options))


def _model(backbone, options):
    """Returns the detector of an encoder, with a new generator that is like it and narrower."""
    config = {**backbone.get_config(), "dtype": backbone.dtype_policy, "name": "generator_backbone"}
    sizes = generator_sizes(config, options["generator_share"])
    return TupeReplacedTokenDetector(
        TupeBackbone(**{**config, **sizes}),
        backbone,
        embedding_sharing=options["embedding_sharing"],
        discriminator_weight=options["discriminator_weight"],
    )


def generator_sizes(sizes, share):
    """Returns the sizes of a generator by those of its discriminator.

    Its heads are as wide as there, and there are fewer: a share of them, rounded, 1 at least.

    Args:
        sizes: dictionary of `num_heads`, `hidden_dim`, `intermediate_dim`, and `embedding_dim`, the
            last of which may be missing or `None`.
        share: of the widths, above 0, at most 1.

    Returns:
        Dictionary of the same four.

    Example:
        >>> base = {"num_heads": 12, "hidden_dim": 768, "intermediate_dim": 3072}
        >>> generator_sizes(base, 1 / 3)["hidden_dim"]
        256
    """
    heads = max(1, round(sizes["num_heads"] * share))
    width = heads * sizes["hidden_dim"] // sizes["num_heads"]
    embedding = sizes.get("embedding_dim") or sizes["hidden_dim"]
    return {
        "num_heads": heads,
        "hidden_dim": width,
        "intermediate_dim": max(1, round(sizes["intermediate_dim"] * width / sizes["hidden_dim"])),
        "embedding_dim": None if embedding == width else embedding,
    }


def _flops(sizes, batch_size, length, options):
    """Those of the generator at masked slots, and of the discriminator at all tokens."""
    generator = {**sizes, **generator_sizes(sizes, options["generator_share"])}
    slots = MASKED_LM.num_predictions(length, options)
    return masked_lm_flops(generator, batch_size, length, slots) + masked_lm_flops(
        {**sizes, "vocabulary_size": 1, "embedding_dim": None}, batch_size, length, length
    )


OBJECTIVE = dataclasses.replace(
    MASKED_LM,
    summary="which tokens a small masked language model has replaced is predicted",
    source="Clark et al. 2020, section 2; Ke et al. 2021, appendix",
    task=TupeReplacedTokenDetector,
    rule=_rule,
    model=_model,
    flops=_flops,
    outputs={
        "masked_lm": Output(MASKED_LM.predictions, MASKED_LM.accuracy),
        "replaced_token": Output("token", "replaced-token accuracy", ReplacedTokenAccuracy),
    },
    preset_options=("embedding_sharing", "discriminator_weight"),
    options={
        **MASKED_LM.options,
        "generator_share": 0.25,
        "embedding_sharing": "tied",
        "discriminator_weight": 50.0,
    },
)
