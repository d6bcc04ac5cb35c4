"""Which positions of a row are masked."""

import numpy as np

from keras_tupe.data.rows.counter_rng import random_bits
from keras_tupe.data.rows.whole_words import choose_words

POSITION_BITS = 20  # rows may have up to 2**20 tokens


def choose_positions(token_ids, example_numbers, masking, seed):
    """Chooses what `mask_rows` hides, some rows of a batch at a time.

    Args:
        token_ids: int32, `(b, length)`, checked.
        example_numbers: integers >= 0, `(b,)`.
        masking: a `Masking`.
        seed: integer from 0 to 2**64 - 1.

    Returns:
        The positions, ascending, int64, and which of the slots are used, bool: both `(b, slots)`.
    """
    length = token_ids.shape[1]
    slots = masking.num_slots(length)
    maskable = masking.is_maskable[token_ids]  # (b, t)
    count = _num_masked(maskable.sum(axis=1), example_numbers, masking.rate, seed)
    count = np.minimum(count, slots)  # (b,)
    if masking.begins_word is None:
        positions = _choose_tokens(maskable, example_numbers, slots, seed)
    else:
        starts = masking.starts_of_words(token_ids)
        positions, count = _choose_words(starts, maskable, example_numbers, count, slots, seed)
    used = np.arange(slots) < count[:, np.newaxis]  # (b, slots)
    positions = np.sort(np.where(used, positions, length), axis=1)  # unused slots come last
    return np.where(used, positions, 0), used


def _num_masked(num_maskable, example_numbers, rate, seed):
    # 32 bits: the sum stays exact in float64, so that it never rounds up to one token too many
    uniform = (random_bits(seed, "masking: count", example_numbers) >> np.uint64(32)) / 2.0**32
    return np.minimum((rate * num_maskable + uniform).astype("int64"), num_maskable)


def _choose_tokens(maskable, example_numbers, slots, seed):
    """Positions of the `slots` smallest random keys of each row, smallest first: (b, slots)."""
    position = np.arange(maskable.shape[1], dtype="uint64")
    keys = random_bits(seed, "masking: place", example_numbers[:, np.newaxis], position)
    shift = np.uint64(POSITION_BITS)
    keys = (keys >> shift << shift) | position  # the key carries its position through the sort
    keys = np.where(maskable, keys, np.uint64(2**64 - 1))
    smallest = np.sort(np.partition(keys, slots - 1, axis=1)[:, :slots], axis=1)
    return (smallest & np.uint64(2**POSITION_BITS - 1)).astype("int64")


def _choose_words(starts, maskable, example_numbers, count, slots, seed):
    """Positions of whole words, at most `count` of them: (b, slots), and how many: (b,)."""

    def bits(rows, columns):
        return random_bits(seed, "masking: place", example_numbers[rows], columns)

    chosen = choose_words(starts, maskable, bits, count)
    count = chosen.sum(axis=1)
    rows, columns = np.nonzero(chosen)
    positions = np.zeros((len(count), slots), "int64")
    positions[rows, np.arange(len(rows)) - np.repeat(np.cumsum(count) - count, count)] = columns
    return positions, count
