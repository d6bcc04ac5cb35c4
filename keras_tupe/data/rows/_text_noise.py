"""The noise of denoising: sentences in another order, and spans of tokens behind one mask each."""

import math

import numpy as np

from keras_tupe.data.rows._choose_positions import POSITION_BITS
from keras_tupe.data.rows.counter_rng import random_bits


def permuted_sentences(token_ids, example_numbers, is_frame, ends_sentence, seed):
    """Returns rows with the sentences of each document in a random order.

    A sentence ends with a full stop, or the last of several in a row, and where the document or the
    row ends. A document stands between two tokens of the frame, which stay where they are. All
    orders of its sentences are equally likely: they are sorted by random numbers.

    Args:
        token_ids: integers, `(batch, length)`.
        example_numbers: integers >= 0, `(batch,)`.
        is_frame: bool `(vocabulary_size,)`: tokens that stay in their place.
        ends_sentence: bool `(vocabulary_size,)`: full stops.
        seed: integer from 0 to 2**64 - 1.

    Returns:
        A new array of the same kind.
    """
    frame = is_frame[token_ids]  # (b, t)
    stops = ends_sentence[token_ids]
    follows_frame = np.pad(frame, ((0, 0), (1, 0)))[:, :-1]
    begins = frame | follows_frame
    begins[:, 1:] |= stops[:, :-1] & ~stops[:, 1:]
    first = np.where(begins, np.arange(token_ids.shape[1]), 0)
    first = np.maximum.accumulate(first, axis=1)  # position of the first token of the sentence
    keys = random_bits(
        seed, "denoising: sentence", np.asarray(example_numbers)[:, np.newaxis], first
    )
    part = np.cumsum(frame | follows_frame, axis=1)  # each token of the frame is one by itself
    order = np.lexsort((keys, part), axis=-1)  # stable: a sentence's tokens keep their order
    return np.take_along_axis(token_ids, order, axis=1)


def poisson_limits(mean):
    """Returns P(length <= k) * 2**32 for k = 0, 1, ..., uint64, until it is 2**32.

    Args:
        mean: of the lengths, from 1 to 100.

    Example:
        >>> limits = poisson_limits(3.0)
        >>> round(float(limits[0]) / 2**32, 4)  # exp(-3)
        0.0498
    """
    limits, share, total = [], math.exp(-mean), 0.0
    while not limits or limits[-1] < 2**32:
        total += share
        limits.append(round(total * 2**32))
        share *= mean / len(limits)
    return np.array(limits, "uint64")


def span_lengths(totals, example_numbers, limits, seed):
    """Draws the lengths of spans that cover a number of tokens of each row.

    Lengths are drawn from the Poisson distribution until they cover the number, `totals` times at
    most; the last one is what is left then.

    Args:
        totals: integers >= 0, `(batch,)`: tokens to cover.
        example_numbers: integers >= 0, `(batch,)`.
        limits: see `poisson_limits`.
        seed: integer from 0 to 2**64 - 1.

    Returns:
        `(lengths, counts)`: int64 `(batch, most)`, 0 where there is no span, and how many spans
        each row has, `(batch,)`.
    """
    column = np.arange(totals.max(initial=0))
    bits = random_bits(
        seed, "denoising: length", np.asarray(example_numbers)[:, np.newaxis], column
    )
    draws = np.searchsorted(limits, bits >> np.uint64(32), side="right")  # (b, s)
    covered = np.cumsum(draws, axis=1)
    left = totals[:, np.newaxis] - covered + draws  # before each draw
    counts = np.minimum((covered < totals[:, np.newaxis]).sum(axis=1) + 1, totals)
    last = counts[:, np.newaxis] - 1
    lengths = np.where(column < last, draws, np.where(column == last, left, 0))
    return lengths, counts


def infilled_spans(token_ids, example_numbers, *, is_special, mask_id, pad_id, share, limits, seed):
    """Returns rows in which spans of tokens stand behind one mask each.

    Of the n tokens of a row that are not special, m = int(share n + U[0, 1)) are covered by k spans
    of lengths l_1 ... l_k, see `span_lengths`. What is then left has n - m + k items, and any k of
    them, in any order, are as likely as any others to be the masks of these spans. A mask of no
    tokens is inserted. A span that special tokens interrupt has a mask on each side of them; if
    there would be more than m masks in all, the last ones of no tokens are left out, so that no row
    becomes longer.

    Args:
        token_ids: int32, `(batch, length)`, with padding at the end.
        example_numbers: integers >= 0, `(batch,)`.
        is_special: bool `(vocabulary_size,)`: tokens that are never covered.
        mask_id, pad_id: of [MASK] and [PAD].
        share: of the tokens to cover, above 0, at most 1.
        limits: see `poisson_limits`.
        seed: integer from 0 to 2**64 - 1.

    Returns:
        int32 `(batch, length)`, with padding at the end.
    """
    numbers = np.asarray(example_numbers)
    is_text = ~is_special[token_ids]  # (b, t)
    size = is_text.sum(axis=1)
    # 32 bits: the sum stays exact in float64, so that it never rounds up to one token too many
    uniform = (random_bits(seed, "denoising: count", numbers) >> np.uint64(32)) / 2.0**32
    totals = np.minimum((share * size + uniform).astype("int64"), size)
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

    is_empty = is_span & (widths == 0)
    room = totals - begins.sum(axis=1)
    rows, items = np.nonzero(is_empty & (np.cumsum(is_empty, axis=1) <= room[:, np.newaxis]))
    behind = (np.cumsum(widths, axis=1) - widths)[rows, items]  # tokens of text before the mask
    columns = np.argsort(~is_text, axis=1, kind="stable")  # of the text's tokens
    at_end = behind == size[rows]
    np.add.at(masks, (rows, columns[rows, behind - at_end] + at_end), 1)
    return _joined(token_ids, (token_ids != pad_id) & (span < 0), masks, mask_id, pad_id)


def _items(numbers, sizes, lengths, counts, length, seed):
    """Returns which items of each row are spans, and the tokens of each: both `(batch, length)`.

    The span of the j-th length is the item with the j-th smallest of the row's random numbers.
    """
    place = np.arange(length, dtype="uint64")
    is_item = place < sizes[:, np.newaxis].astype("uint64")
    keys = random_bits(seed, "denoising: place", numbers[:, np.newaxis], place)
    shift = np.uint64(POSITION_BITS)
    keys = (keys >> shift << shift) | place  # the key carries its position through the sort
    keys = np.sort(np.where(is_item, keys, np.uint64(2**64 - 1)), axis=1)[:, : lengths.shape[1]]
    order = (keys & np.uint64(2**POSITION_BITS - 1)).astype("int64")
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
