"""Causal language modeling: each token is predicted from those before it."""

import math

from keras_tupe.data import NextTokens
from keras_tupe.models import TupeCausalLM
from keras_tupe.objectives import Objective

PER_TOKEN, PER_CHARACTER = "perplexity per token", "perplexity per character"


def _numbers(loss, characters):
    """Perplexities: that per character does not depend on how text is cut into tokens."""
    return {PER_TOKEN: _exp(loss), PER_CHARACTER: _exp(loss / characters)}


def _exp(value):
    return math.exp(min(value, 700.0))  # of a model that diverged


OBJECTIVE = Objective(
    summary="each token is predicted from those before it",
    source="Radford et al. 2018, section 3.1",
    task=TupeCausalLM,
    rule=lambda rows, options: NextTokens.of(rows.vocabulary),
    num_predictions=lambda length, options: length - 1,
    predictions="token",
    accuracy="next-token accuracy",
    numbers=_numbers,
)
