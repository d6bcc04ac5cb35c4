"""A whole objective in one file: hidden tokens, of which each row has a share of its own."""

import math

import numpy as np

from keras_tupe.data import Masking
from keras_tupe.models import TupeMaskedLM
from keras_tupe.objectives import Objective
from keras_tupe.tasks import RATE, setting


class DrawnRate(Masking):
    """Masks as `Masking` does; of the masks of a row a share is predicted that the row draws.

    The share is uniform from 0 to 1, a function of the seed and the number of the example alone, so
    that a batch is the same after any resumption. What is not predicted has weight 0 and its own
    token back.
    """

    def examples(self, token_ids, example_numbers, seed):
        """Returns inputs, labels and weights of rows."""
        inputs, labels, weights = super().examples(token_ids, example_numbers, seed)
        keep = np.empty(weights.shape, bool)
        for row, number in enumerate(example_numbers):
            drawn = np.random.default_rng([seed, int(number)])
            keep[row] = drawn.random(weights.shape[1]) < drawn.random()
        rows, slots = np.nonzero(~keep & (weights > 0))
        places = inputs["mask_positions"][rows, slots]
        inputs["token_ids"][rows, places] = np.asarray(token_ids)[rows, places]
        return inputs, labels, weights * keep


OBJECTIVE = Objective(
    summary="hidden tokens are predicted, of which each row has another share",
    source="Chang et al. 2022, Sec. 3.1 (MaskGIT), with a uniform share",
    task=TupeMaskedLM,
    rule=lambda rows, options: DrawnRate.of(rows.vocabulary, rate=options["mask_rate"]),
    num_predictions=lambda length, options: math.ceil(options["mask_rate"] * length),
    predictions="masked token",
    accuracy="masked accuracy",
    options={"mask_rate": setting(RATE, "Share of the tokens that are masked.", 0.5)},
)
