"""How a trained model knows the order of tokens, measured: it decides which ceiling holds."""

import numpy as np

from keras_tupe import positions
from training.studies.probe.ceilings import EVERYWHERE, NOWHERE, TRAINED
from training.studies.probe.vocabulary import HEADER

TOLERANCE = 1e-4  # of the largest logit; rounding of float32 is far below, and order far above


def kind_of(model, logits_of, token_ids, trained_length, seed=0):
    """Returns how a model knows the order, from permuted rows.

    Equation, for a permutation pi of the positions of a body, and for one of those that training
    never had:

        nowhere  logits(x pi) = logits(x) pi
        trained  logits(x pi; tables pi) = logits(x; tables) pi

    Args:
        model: a trained `TupeMaskedLM` that computes in float32 or float64, since the rounding of
            half precision looks like order; its tables are as before in the end.
        logits_of: function of token ids -> logits `(rows, length, tokens)`.
        token_ids: rows longer than those of training, `(rows, length)`.
        trained_length: tokens of the longest row of training.
        seed: of the permutations.

    Returns:
        One of `KINDS`.
    """
    length, rng = token_ids.shape[1], np.random.default_rng(seed)
    before = logits_of(token_ids)
    order = _permuted(rng, length, HEADER)
    if _difference(logits_of(token_ids[:, order]), before[:, order]) < TOLERANCE:
        return NOWHERE
    tables = tables_of(model)
    if not tables or trained_length >= length - 1:
        return EVERYWHERE
    order = _permuted(rng, length, trained_length)
    values = [table.numpy() for table in tables]
    for table, value in zip(tables, values, strict=True):
        rows = value.copy()
        rows[:length] = value[order]
        table.assign(rows)
    after = logits_of(token_ids[:, order])
    for table, value in zip(tables, values, strict=True):
        table.assign(value)
    return TRAINED if _difference(after, before[:, order]) < TOLERANCE else EVERYWHERE


def tables_of(model):
    """Returns the weights of a model that have one row per position."""
    ends = positions.get(model.backbone.position).absolute_tables
    return [weight for weight in model.weights if ends and weight.path.endswith(ends)]


def _permuted(rng, length, first):
    return np.concatenate([np.arange(first), first + rng.permutation(length - first)])


def _difference(one, other):
    return float(np.abs(one - other).max() / np.abs(other).max())
