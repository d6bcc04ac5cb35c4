"""Masked language modeling: tokens that were hidden are predicted from both sides."""

import math

from keras_tupe.data import Masking
from keras_tupe.models import TupeMaskedLM
from keras_tupe.objectives import Objective
from keras_tupe.tasks import FLAG, RATE, setting


def _rule(rows, options):
    return Masking.of(
        rows.vocabulary,
        rate=options["mask_rate"],
        whole_word=options["whole_word"],
        mask_special=options["mask_special"],
    )


OBJECTIVE = Objective(
    summary="hidden tokens are predicted from all others",
    source="Devlin et al. 2019, section 3.1",
    task=TupeMaskedLM,
    rule=_rule,
    num_predictions=lambda length, options: math.ceil(options["mask_rate"] * length),
    predictions="masked token",
    accuracy="masked accuracy",
    options={
        "mask_rate": setting(RATE, "Share of the tokens that are predicted.", 0.15),
        "whole_word": setting(FLAG, "Whether all pieces of a word are masked together.", False),
        "mask_special": setting(FLAG, "Whether special tokens may be masked.", False),
    },
)
