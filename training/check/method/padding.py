"""Padding is invisible: neither how much there is, nor what stands in it, changes an answer."""

from training.check.compare import in_float64, require_near
from training.check.method.cases import encoder, inputs, outputs, random_ids, shared_encoder


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
