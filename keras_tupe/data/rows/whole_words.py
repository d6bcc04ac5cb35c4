"""Choosing whole words to mask, all rows of a batch at once."""

import numpy as np

from keras_tupe.data.rows.counter_rng import places_in, random_bits, with_places


def starts_of_words(token_ids, begins_word, is_special):
    """Where a word begins: bool `(batch, length)`.

    A word begins at the first token of a row (also in the middle of a sentence that was split),
    at a piece that begins words, at a special token and after one; so a special token is a word
    of its own.
    """
    special = is_special[token_ids]
    starts = begins_word[token_ids] | special
    starts[:, 1:] |= special[:, :-1]
    starts[:, 0] = True
    return starts


def choose_words(starts, maskable, example_numbers, budgets, seed):
    """Takes words in random order, each that still fits: True at the tokens of the words taken.

    In each row the words are tried in the order of their random bits. A word of more tokens than
    are left of the row's budget is passed over, and smaller ones after it are tried; so the budget
    is never exceeded, and missed only if no word left is small enough.
    """
    num_rows, length = starts.shape
    flat_starts = np.flatnonzero(starts)  # of all words of the batch: (words,)
    sizes = np.diff(flat_starts, append=starts.size)
    tried = np.flatnonzero(maskable.ravel()[flat_starts])
    rows, columns = np.divmod(flat_starts[tried], length)

    per_row = np.bincount(rows, minlength=num_rows)
    places = np.arange(len(rows)) - np.repeat(np.cumsum(per_row) - per_row, per_row)
    most = per_row.max()
    ranked = np.full((num_rows, most), 2**64 - 1, "uint64")  # rows of fewer words are filled up
    bits = random_bits(seed, "masking: place", example_numbers[rows], columns)
    ranked[rows, places] = with_places(bits, places)
    ranked.sort(axis=1)
    order = np.minimum(places_in(ranked), most)
    table = np.zeros((num_rows, most + 1), "int32")  # the filling comes last and takes nothing
    table[rows, places] = sizes[tried]

    left = np.array(budgets, "int32")
    fits = np.zeros((most, num_rows), bool)  # word by word: the rows of a step lie side by side
    for step, size in enumerate(np.take_along_axis(table, order, axis=1).T.copy()):
        fits[step] = size <= left
        left -= size * fits[step]
        if not left.any():
            break
    taken = np.zeros((num_rows, most + 1), bool)
    np.put_along_axis(taken, order, fits.T, axis=1)
    chosen = np.zeros(len(flat_starts), bool)
    chosen[tried] = taken[rows, places]
    return np.repeat(chosen, sizes).reshape(starts.shape)
