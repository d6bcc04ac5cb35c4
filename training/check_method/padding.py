"""Padding is invisible: neither how much there is, nor what stands in it, changes an answer."""

import numpy as np

from training.check_method.cases import encoder, inputs, outputs, random_ids, shared_encoder
from training.check_method.compare import in_float64, require, require_near


def check_more_padding(case, length=5, padding=6, seed=0):
    """Checks that padded tokens at the end change nothing for real ones.

    Args:
        case: a `Case`.
        length: number of real tokens.
        padding: number of padded ones.
        seed: of the random tokens.
    """
    model = shared_encoder(case)
    token_ids = random_ids(2, length + padding, seed)  # padded positions hold garbage
    _require_same(model, token_ids, length, in_float64(1e-11))


def check_more_padding_in_float32(case):
    """Checks the same of new weights in float32."""
    model = encoder(case, "float32", scale=None)  # as initialized
    _require_same(model, random_ids(3, 11), 7, 1e-6)


def _require_same(model, token_ids, length, tolerance):
    sequence, pooled = outputs(model, inputs(token_ids[:, :length]))
    padded, padded_pooled = outputs(model, inputs(token_ids, lengths=[length] * len(token_ids)))
    what = f"output of {length} tokens with {token_ids.shape[1] - length} padded ones behind them"
    require_near(padded[:, :length], sequence, tolerance, f"The {what} differs from that without")
    require_near(padded_pooled, pooled, tolerance, f"The pooled {what} differs from that without")


def check_content_of_padding(case):
    """Checks that what stands in padded positions is invisible, and that the mask matters."""
    model, lengths = shared_encoder(case), [7, 4, 1]
    token_ids, other = random_ids(3, 7), random_ids(3, 7, seed=1)
    given = inputs(token_ids, lengths)
    real = given["padding_mask"].astype(bool)
    changed = inputs(np.where(real, token_ids, other), lengths)
    before, after = outputs(model, given), outputs(model, changed)
    what = "output differs when other tokens stand in padded positions"
    require_near(after[0][real], before[0][real], 0, f"The sequence {what}")
    require_near(after[1], before[1], 0, f"The pooled {what}")
    unmasked = outputs(model, inputs(changed["token_ids"]))
    require(
        np.abs(unmasked[0][real] - before[0][real]).max() > 1e-3,
        "The padding mask must matter, and the answers are the same without it.",
    )


def check_row_of_padding(case):
    """Checks that a row of padding alone is finite and leaves other rows alone."""
    model = shared_encoder(case)
    token_ids = random_ids(3, 7)
    sequence, pooled = outputs(model, inputs(token_ids, lengths=[5, 0, 7]))
    require(
        np.isfinite(sequence).all() and np.isfinite(pooled).all(),
        "The outputs must be finite where a row of the batch is padding alone.",
    )
    alone = outputs(model, inputs(token_ids[:1], lengths=[5]))
    what = "output of a row differs when another one is padding alone"
    require_near(sequence[:1, :5], alone[0][:, :5], in_float64(1e-11), f"The {what}")
    require_near(pooled[:1], alone[1], in_float64(1e-11), f"The pooled {what}")
