"""Masked language modeling, and whether the second segment follows the first: BERT's two tasks."""

import dataclasses

from keras_tupe.data import MaskedPairs
from keras_tupe.models import TupeMaskedPairLM
from keras_tupe.objectives import Output
from keras_tupe.objectives.masked_lm import OBJECTIVE as MASKED_LM


def _rule(rows, options):
    return MaskedPairs.of(rows, "next", MASKED_LM.rule(rows, options))


OBJECTIVE = dataclasses.replace(
    MASKED_LM,
    summary="hidden tokens, and whether the second segment follows the first, are predicted",
    source="Devlin et al. 2019, section 3.1",
    task=TupeMaskedPairLM,
    rule=_rule,
    outputs={
        "masked_lm": Output(MASKED_LM.predictions, MASKED_LM.accuracy),
        "pair": Output("pair", "next-sentence accuracy"),
    },
)
