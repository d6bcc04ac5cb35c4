"""The noise of denoising: sentences in another order, and spans of tokens behind one mask each."""

import math

import numpy as np

from keras_tupe.data.rows.counter_rng import random_bits, random_counts, random_places


def permuted_sentences(token_ids, numbers, is_frame, ends_sentence, seed):
    """Returns rows with the sentences of each document in a random order; frames stay."""
    frame = is_frame[token_ids]  # (b, t)
    stops = ends_sentence[token_ids]
    follows_frame = np.pad(frame, ((0, 0), (1, 0)))[:, :-1]
    begins = frame | follows_frame
    begins[:, 1:] |= stops[:, :-1] & ~stops[:, 1:]
    first = np.where(begins, np.arange(token_ids.shape[1]), 0)
    first = np.maximum.accumulate(first, axis=1)  # position of the first token of the sentence
    keys = random_bits(seed, "denoising: sentence", numbers[:, np.newaxis], first)
    part = np.cumsum(frame | follows_frame, axis=1)  # each token of the frame is one by itself
    order = np.lexsort((keys, part), axis=-1)  # stable: a sentence's tokens keep their order
    return np.take_along_axis(token_ids, order, axis=1)


def poisson_limits(mean):
    """Returns P(length <= k) * 2**32 for k = 0, 1, ..., uint64, until it is 2**32."""
    limits, share, total = [], math.exp(-mean), 0.0
    while not limits or limits[-1] < 2**32:
        total += share
        limits.append(round(total * 2**32))
        share *= mean / len(limits)
    return np.array(limits, "uint64")


def span_lengths(totals, numbers, limits, seed):
    """Draws lengths of spans that cover `totals` tokens: `(b, most)`, and how many, `(b,)`."""
    column = np.arange(totals.max(initial=0))
    bits = random_bits(seed, "denoising: length", numbers[:, np.newaxis], column)
    draws = np.searchsorted(limits, bits >> np.uint64(32), side="right")  # (b, s)
    covered = np.cumsum(draws, axis=1)
    left = totals[:, np.newaxis] - covered + draws  # before each draw
    counts = np.minimum((covered < totals[:, np.newaxis]).sum(axis=1) + 1, totals)
    last = counts[:, np.newaxis] - 1
    lengths = np.where(column < last, draws, np.where(column == last, left, 0))
    return lengths, counts


def infilled_spans(token_ids, numbers, *, is_special, mask_id, pad_id, share, limits, seed):
    """Returns rows in which spans of tokens stand behind one mask each, padded at the end."""
    is_text = ~is_special[token_ids]  # (b, t)
    size = is_text.sum(axis=1)
    totals = random_counts(seed, "denoising: count", numbers, share, size)
    if not totals.any():
        return token_ids.copy()
    lengths, counts = span_lengths(totals, numbers, limits, seed)
    sizes = size - totals + counts
    is_span, widths = _items(numbers, sizes, lengths, counts, token_ids.shape[1], seed)

    # the span of each token, -1 for none: the items' tokens are those of the text, in order
    item = np.repeat(np.arange(widths.size), widths.ravel())
    span = np.full(token_ids.shape, -1)
    span[is_text] = np.where(is_span.ravel()[item], item, -1)
    begins = (span >= 0) & (span != np.pad(span, ((0, 0), (1, 0)), constant_values=-1)[:, :-1])
    masks = np.pad(begins.astype("int64"), ((0, 0), (0, 1)))  # before each token, and at the end

    # special tokens may cut a span, each part of which has a mask: so that no row becomes longer,
    # there may not be room for all masks of no tokens
    is_empty = is_span & (widths == 0)
    room = totals - begins.sum(axis=1)
    rows, items = np.nonzero(is_empty & (np.cumsum(is_empty, axis=1) <= room[:, np.newaxis]))
    behind = (np.cumsum(widths, axis=1) - widths)[rows, items]  # tokens of text before the mask
    columns = np.argsort(~is_text, axis=1, kind="stable")  # of the text's tokens
    at_end = behind == size[rows]
    np.add.at(masks, (rows, columns[rows, behind - at_end] + at_end), 1)
    return _joined(token_ids, (token_ids != pad_id) & (span < 0), masks, mask_id, pad_id)


def _items(numbers, sizes, lengths, counts, length, seed):
    """Returns which items of each row are spans, and the tokens of each: both `(b, length)`."""
    is_item = np.arange(length) < sizes[:, np.newaxis]
    order = random_places(seed, "denoising: place", numbers, is_item, lengths.shape[1])
    is_used = np.arange(lengths.shape[1]) < counts[:, np.newaxis]
    order = np.where(is_used, order, length)  # the rest goes into a column of its own
    widths = np.pad(is_item.astype("int64"), ((0, 0), (0, 1)))
    is_span = np.zeros(widths.shape, bool)
    np.put_along_axis(widths, order, lengths, axis=1)
    np.put_along_axis(is_span, order, is_used, axis=1)
    return is_span[:, :-1], widths[:, :-1]


def _joined(token_ids, is_visible, masks, mask_id, pad_id):
    """Returns rows of the visible tokens and of the masks before each of them and at the end."""
    ends = np.cumsum(masks + np.pad(is_visible, ((0, 0), (0, 1))), axis=1)  # (b, t + 1)
    is_used = np.arange(token_ids.shape[1]) < ends[:, -1:]
    found = np.where(is_used, mask_id, pad_id).astype("int32")
    rows, columns = np.nonzero(is_visible)
    found[rows, ends[rows, columns] - 1] = token_ids[rows, columns]
    return found
