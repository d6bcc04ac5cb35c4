"""Attention scores of a model on a text, averaged over its sequences."""

import numpy as np
from keras import ops

from keras_tupe.analysis._checks import check_whole_rows
from keras_tupe.trunk.inputs import check_inputs


def mean_attention_scores(backbone, token_ids, padding_mask, segment_ids=None):
    """Returns the attention scores of every block and head, averaged over a batch.

    Equation (Huang et al. 2020, Fig. 5), over the sequences b in which both tokens are real:

        out[layer, h, i, j] = mean over b of scores[layer, b, h, i, j]

    Sequences of different lengths: a position in which no sequence has both tokens is NaN, not 0,
    and the rows of the others need not sum to 1, since few sequences have the last keys. Batches
    of sequences of one length have neither. A head that was removed from a layer is NaN.

    Args:
        backbone: a `TupeBackbone`.
        token_ids: integers `(batch, length)`.
        padding_mask: integers or booleans of the same shape, 1 = real token.
        segment_ids: the same, for a backbone with segments. Defaults to segment 0 everywhere.

    Returns:
        float64 `(num_layers, num_heads, length, length)`, in [0, 1] or NaN.

    Raises:
        ValueError: if the inputs do not fit each other or the model, or a sequence does not begin
            with a real token.
        TypeError: if the ids are not integers.

    Example:
        >>> backbone = keras_tupe.TupeBackbone(100, 2, 2, 16, 32)
        >>> ids = np.array([[2, 7, 9, 3]])
        >>> scores = mean_attention_scores(backbone, ids, np.ones_like(ids))
        >>> scores.shape, scores.sum(axis=-1).round(3).min()
        ((2, 2, 4, 4), np.float64(1.0))
    """
    check_whole_rows(backbone)
    inputs = {"token_ids": np.asarray(token_ids), "padding_mask": np.asarray(padding_mask)}
    if backbone.num_segments:
        ids = inputs["token_ids"]
        inputs["segment_ids"] = np.zeros_like(ids) if segment_ids is None else segment_ids
        inputs["segment_ids"] = np.asarray(inputs["segment_ids"])
    check_inputs(inputs, list(inputs))
    is_real = inputs["padding_mask"].astype(bool)
    if not is_real.size or not is_real[:, 0].all():
        raise ValueError(
            "Every sequence must begin with a real token, [CLS], and there must be one. Received: "
            f"padding_mask of shape {is_real.shape} with first column "
            f"{inputs['padding_mask'][:, :1].ravel().tolist()}"
        )
    both = (is_real[:, :, None] & is_real[:, None, :])[:, None]  # (b, 1, n, n)
    counts = both.sum(axis=0)
    length = is_real.shape[1]
    means = np.full((backbone.num_layers, backbone.num_heads, length, length), np.nan)
    for layer, scores in enumerate(_scores(backbone, inputs)):
        total = np.where(both, scores.astype("float64"), 0).sum(axis=0)
        heads = backbone.config.heads[layer]
        means[layer, heads] = np.where(counts, total / np.maximum(counts, 1), np.nan)
    return means


def _scores(backbone, inputs):
    """Returns the scores of each block, `(batch, num_heads, length, length)`."""
    found, given = [], {"padding_mask": inputs["padding_mask"]}

    def each(layer, block, x, terms):
        seen = block.attention_norm(x) if block.normalize_first else x
        found.append(ops.convert_to_numpy(block.attention.scores(seen, **terms, **given)))
        return block(x, **terms, **given)

    backbone.trunk(inputs, each)
    return found
