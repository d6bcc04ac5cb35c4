"""Masked language modeling, and whether two segments are swapped: ALBERT's two tasks."""

import dataclasses

from keras_tupe.data import MaskedPairs
from keras_tupe.objectives import Output
from keras_tupe.objectives.masked_lm import OBJECTIVE as MASKED_LM
from keras_tupe.objectives.next_sentence import OBJECTIVE as NEXT_SENTENCE


def _rule(rows, options):
    return MaskedPairs.of(rows, "order", MASKED_LM.rule(rows, options))


OBJECTIVE = dataclasses.replace(
    NEXT_SENTENCE,
    summary="hidden tokens, and whether two segments are swapped, are predicted",
    source="Lan et al. 2020, section 3.1",
    rule=_rule,
    outputs={
        **NEXT_SENTENCE.outputs,
        "pair": Output("pair", "sentence-order accuracy"),
    },
)
