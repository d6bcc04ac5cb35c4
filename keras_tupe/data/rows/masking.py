"""Dynamic masking: which tokens are hidden is a pure function of (seed, global example number)."""

import dataclasses
import functools
import math

import numpy as np

from keras_tupe.check import number
from keras_tupe.data.rows.counter_rng import (
    places_in,
    random_below,
    random_bits,
    random_counts,
    random_places,
    with_places,
)
from keras_tupe.data.rows.rows import check_example_numbers, check_rows

_BLOCK = 256  # rows at a time: more would leave the cache of the processor
_MASK_BELOW = int(0.8 * 2**32)
_RANDOM_BELOW = int(0.9 * 2**32)


@dataclasses.dataclass(frozen=True)
class Masking:
    """How some tokens of every row are hidden, for the masked language model.

    Of the n maskable tokens of a row, m = int(rate * n + U[0, 1)) are chosen uniformly, without
    replacement; each is then replaced by [MASK] (80 %), by a random ordinary piece (10 %), or
    kept (10 %). The number of slots is fixed, so shapes are static; unused slots have position 0,
    label `pad_id` and weight 0. A row's result depends on nothing but the row, its example number
    and the seed: not on the batch it is in.

    With `begins_word` the words of the row are tried in random order instead, and each is taken
    whole if it fits into what is left of m (and of the slots), as in BERT's code: so m may be
    missed, but is never exceeded. A special token, [UNK] with them, is a word of its own. Each
    piece of a word draws its own 80/10/10. If every piece begins a word, the result is that of
    masking tokens.

    Args:
        vocabulary_size: number of pieces; random words are drawn from them, special ones apart.
        mask_id: id of [MASK].
        pad_id: id of [PAD]; never masked, and the label of unused slots.
        special_ids: ids of all special tokens, such as [CLS]; `mask_id` and `pad_id` are added.
        rate: share of the maskable tokens that is masked, above 0, at most 1. Defaults to 0.15.
        mask_special: whether special tokens except padding are masked like any other, as the
            released fairseq code does. Defaults to `False`.
        begins_word: whether each piece begins a word, bools `(vocabulary_size,)` such as
            `word_starts` makes, to mask whole words; or `None`, the default, for single tokens.
    """

    vocabulary_size: int
    mask_id: int
    pad_id: int
    special_ids: tuple = ()
    rate: float = 0.15
    mask_special: bool = False
    begins_word: tuple | None = dataclasses.field(default=None, repr=False)

    def __post_init__(self):
        special = sorted({int(token) for token in (*self.special_ids, self.mask_id, self.pad_id)})
        object.__setattr__(self, "special_ids", tuple(special))
        if special[0] < 0 or special[-1] >= self.vocabulary_size:
            raise ValueError(
                f"Special ids must be from 0 to {self.vocabulary_size - 1}. "
                f"Received: special_ids={tuple(special)}"
            )
        if len(special) == self.vocabulary_size:
            raise ValueError(
                "The vocabulary must have a piece that is not special, to draw random words from. "
                f"Received: vocabulary_size={self.vocabulary_size}"
            )
        number("rate", self.rate, above=0, at_most=1)
        if self.begins_word is not None:
            if len(self.begins_word) != self.vocabulary_size:
                raise ValueError(
                    "`begins_word` must have one value per piece of the vocabulary, "
                    f"{self.vocabulary_size}. Received: len(begins_word)={len(self.begins_word)}"
                )
            # a tuple, so that two records can be compared
            object.__setattr__(self, "begins_word", tuple(map(bool, self.begins_word)))

    @classmethod
    def of(cls, vocabulary, *, whole_word=False, **settings):
        """Returns the rule for rows of a vocabulary.

        Args:
            vocabulary: a `PreparedVocabulary`.
            whole_word: whether whole words are masked. Defaults to `False`.
            **settings: `rate` and `mask_special`.
        """
        return cls(
            vocabulary.size,
            mask_id=vocabulary.mask_id,
            pad_id=vocabulary.pad_id,
            special_ids=vocabulary.special_ids,
            begins_word=vocabulary.begins_word if whole_word else None,
            **settings,
        )

    def num_slots(self, length):
        """Masked slots of a row of `length` tokens: the same for every row of that length."""
        return min(math.ceil(self.rate * length), length)

    def examples(self, token_ids, example_numbers, seed):
        """Inputs, labels and weights of rows.

        Args:
            token_ids: integers, `(batch, length)`.
            example_numbers: integers >= 0, `(batch,)`; the number of each example since the start
                of training, so that a row is masked differently in every epoch.
            seed: integer from 0 to 2**64 - 1.

        Returns:
            `(inputs, labels, weights)`: a dictionary of `token_ids` (masked), `padding_mask` (1 =
            real token), both int32 `(batch, length)`, and `mask_positions`, int32 `(batch, slots)`,
            ascending; the hidden ids, int32 `(batch, slots)`; 1 or 0, float32 `(batch, slots)`.
        """
        token_ids = check_rows(token_ids, self.vocabulary_size).astype("int32", copy=False)
        numbers = check_example_numbers(example_numbers, token_ids.shape)
        cuts = range(_BLOCK, len(token_ids), _BLOCK)
        blocks = zip(np.split(token_ids, cuts), np.split(numbers, cuts), strict=True)
        chosen = [self._positions(*block, seed) for block in blocks]
        positions, used = map(np.concatenate, zip(*chosen, strict=True))  # (b, slots)
        labels = np.take_along_axis(token_ids, positions, axis=1)

        bits = random_bits(seed, "masking: kind", numbers[:, np.newaxis], positions)
        kind = bits >> np.uint64(32)
        words = self.ordinary_ids[random_below(bits, len(self.ordinary_ids))]
        hidden = np.where(kind < _RANDOM_BELOW, words, labels)
        hidden = np.where(kind < _MASK_BELOW, np.int32(self.mask_id), hidden)
        masked = token_ids.copy()
        masked[np.nonzero(used)[0], positions[used]] = hidden[used]

        inputs = {
            "token_ids": masked,
            "padding_mask": (token_ids != self.pad_id).astype("int32"),
            "mask_positions": positions.astype("int32"),
        }
        return inputs, np.where(used, labels, np.int32(self.pad_id)), used.astype("float32")

    def _positions(self, token_ids, numbers, seed):
        """What is hidden, ascending, and which of the slots are used: both `(b, slots)`."""
        length = token_ids.shape[1]
        slots = self.num_slots(length)
        maskable = self.is_maskable[token_ids]  # (b, t)
        count = random_counts(seed, "masking: count", numbers, self.rate, maskable.sum(axis=1))
        if self.begins_word is None:
            places = random_places(seed, "masking: place", numbers, maskable, slots)
            places = np.where(np.arange(slots) < count[:, np.newaxis], places, length)
        else:
            starts = starts_of_words(token_ids, *self._word_tables)
            chosen = _choose_words(starts, maskable, numbers, count, seed)
            places = np.where(chosen, np.arange(length), length)
        places = np.sort(places, axis=1)[:, :slots]  # unused slots come last
        used = places < length
        return np.where(used, places, 0), used

    @functools.cached_property
    def ordinary_ids(self):
        """The ids that random words are drawn from, int32, ascending."""
        return np.setdiff1d(np.arange(self.vocabulary_size, dtype="int32"), self.special_ids)

    @functools.cached_property
    def is_maskable(self):
        """Whether a token of each id may be masked, bool, `(vocabulary_size,)`."""
        never = [self.pad_id] if self.mask_special else list(self.special_ids)
        maskable = np.ones(self.vocabulary_size, bool)
        maskable[never] = False
        return maskable

    @functools.cached_property
    def _word_tables(self):
        is_special = np.zeros(self.vocabulary_size, bool)
        is_special[list(self.special_ids)] = True
        return np.array(self.begins_word), is_special


class OverMasking:
    """A rule that masks tokens as part of its work, by its `masking`."""

    @property
    def vocabulary_size(self):
        """Number of pieces."""
        return self.masking.vocabulary_size

    @property
    def pad_id(self):
        """Id of [PAD]."""
        return self.masking.pad_id


def starts_of_words(token_ids, begins_word, is_special):
    """Where a word begins, `(batch, length)`: also at the first token of a row, and after [SEP]."""
    special = is_special[token_ids]
    starts = begins_word[token_ids] | special
    starts[:, 1:] |= special[:, :-1]
    starts[:, 0] = True
    return starts


def _choose_words(starts, maskable, example_numbers, budgets, seed):
    """Takes words in random order, each that still fits: True at the tokens of the words taken."""
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
