"""How much attention [CLS] receives and gives."""

from typing import NamedTuple

import numpy as np

from keras_tupe.analysis._checks import real_numbers


class ClsAttention(NamedTuple):
    """Shares of attention, arrays with a number per head.

    Attributes:
        received: of what a word attends to, the share that is [CLS]; mean over words.
        given: of what [CLS] attends to, the share that is words.
    """

    received: np.ndarray
    given: np.ndarray


def cls_attention(scores):
    """Returns the share of attention that [CLS] receives from words, and gives to them.

    Equation, with [CLS] at position 0 and n - 1 words behind it:

        received[h] = 1 / (n - 1) sum_{i > 0} scores[h, i, 0]
        given[h]    = sum_{j > 0} scores[h, 0, j]

    TUPE unties [CLS] because it should look at the whole sentence and not at the first words, which
    a position bias favours (Ke et al. 2021, Sec. 3.2); what [CLS] itself gets of the words is its
    column. Where a head has no preference, `received` is 1 / n and `given` 1 - 1 / n.

    Args:
        scores: attention scores `(..., length, length)`, such as one block's or all blocks' of
            `mean_attention_scores`. Rows of NaN, which no sequence reaches, are left out.

    Returns:
        A `ClsAttention` of arrays of the shape `(...)`, in [0, 1].

    Raises:
        TypeError: if the scores are not real numbers.
        ValueError: if the shape is another one, there is no word beside [CLS], a score lies outside
            of [0, 1], or one of [CLS] is NaN.

    Example:
        >>> scores = np.array([[[0.4, 0.6, 0.0], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]]])
        >>> received, given = cls_attention(scores)
        >>> received.round(3), given
        (array([0.2]), array([0.6]))

    References:
        Ke, He, Liu. Rethinking Positional Encoding in Language Pre-training. ICLR 2021.
        https://arxiv.org/abs/2006.15595
    """
    scores = np.asarray(scores)
    is_float = scores.dtype.kind == "f"
    real_numbers(np.where(np.isnan(scores), 0, scores) if is_float else scores, "scores")
    shape = scores.shape
    if len(shape) < 2 or shape[-1] != shape[-2] or shape[-1] < 2 or not scores.size:
        raise ValueError(
            "`scores` must have the shape (..., length, length), with [CLS] and at least one word. "
            f"Received: scores of shape {shape}"
        )
    column, row = scores[..., 1:, 0].astype("float64"), scores[..., 0, 1:].astype("float64")
    has_row = ~np.isnan(column)
    if np.isnan(row).all(axis=-1).any() or not has_row.any(axis=-1).all():
        raise ValueError(
            "`scores` must have a row of [CLS] and one of a word: give a text of two tokens or "
            "more. Received: scores that are NaN there"
        )
    if np.nanmin(scores) < 0 or np.nanmax(scores) > 1 + 1e-6:
        raise ValueError(
            "`scores` must lie in [0, 1], as after softmax: give attention scores, not logits. "
            f"Received: scores from {np.nanmin(scores):.3g} to {np.nanmax(scores):.3g}"
        )
    received = np.where(has_row, column, 0).sum(axis=-1) / has_row.sum(axis=-1)
    return ClsAttention(received, np.nansum(row, axis=-1))
