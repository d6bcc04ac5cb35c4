"""Examples of denoising: a row with noise in it, and the row as it was, which is to be written."""

import dataclasses
import functools
import math

import numpy as np

from keras_tupe.check import number
from keras_tupe.data.rows.counter_rng import UNUSED_BITS, random_bits, random_counts
from keras_tupe.data.rows.next_tokens import NextTokens
from keras_tupe.data.rows.rows import check_example_numbers


@dataclasses.dataclass(frozen=True)
class Denoising:
    """How rows become examples of a model that writes a text again from one with noise in it.

    Noise, of a row with n tokens of text:

    1. The sentences of each of its documents come in a random order, all orders alike. A sentence
       ends with a full stop, or where its document or the row ends.
    2. Spans of tokens are taken out, and each leaves **one** mask in its place. Their lengths are
       drawn from the Poisson distribution, until they cover int(infill_share n + U[0, 1)) tokens;
       the last is cut to that. Of what is left, any items are as likely to be the masks as any
       others. A span of length 0 is a mask that hides nothing.

    Special tokens and padding stay, and no row becomes longer. The decoder reads the row
    w_0 ... w_n as it was: input w_0 ... w_{n-1}, labels w_1 ... w_n, the last end token included,
    with which a text that is written ends. An example is a pure function of (seed, example number).

    Differences from the source: the released code covers whole words and rounds the number of
    tokens up; spans may run into each other there, and the shuffled sentences are those of all
    documents in a row.

    Args:
        vocabulary_size: number of pieces.
        mask_id: id of [MASK].
        pad_id: id of [PAD].
        frame_ids: ids of the tokens that sentences are not moved across, [CLS] and [SEP].
        special_ids: ids of all special tokens, which are never covered; the three above are added.
        stop_ids: ids of the pieces that a sentence ends with.
        infill_share: share of the tokens that spans cover, above 0, at most 1. Defaults to 0.3.
        mean_span: mean length of the spans, from 1 to 100. Defaults to 3.0.
        permute_sentences: whether sentences are put into another order. Defaults to `True`.

    References:
        Lewis et al. BART. ACL 2020. Section 2.2. https://arxiv.org/abs/1910.13461
    """

    vocabulary_size: int
    mask_id: int
    pad_id: int
    frame_ids: tuple = ()
    special_ids: tuple = ()
    stop_ids: tuple = ()
    infill_share: float = 0.3
    mean_span: float = 3.0
    permute_sentences: bool = True

    def __post_init__(self):
        added = {"frame_ids": (self.pad_id,), "special_ids": (*self.frame_ids, self.mask_id)}
        added["special_ids"] += (self.pad_id,)
        for name in ("frame_ids", "special_ids", "stop_ids"):
            ids = sorted({int(token) for token in (*getattr(self, name), *added.get(name, ()))})
            object.__setattr__(self, name, tuple(ids))
            if ids and not 0 <= ids[0] <= ids[-1] < self.vocabulary_size:
                raise ValueError(
                    f"`{name}`, `mask_id` and `pad_id` must be from 0 to "
                    f"{self.vocabulary_size - 1}. Received: {ids}"
                )
        number("infill_share", self.infill_share, above=0, at_most=1)
        number("mean_span", self.mean_span, at_least=1, at_most=100)

    @classmethod
    def of(cls, vocabulary, **settings):
        """Returns the rule for rows of a vocabulary.

        Args:
            vocabulary: a `PreparedVocabulary`.
            **settings: `infill_share`, `mean_span` and `permute_sentences`.
        """
        return cls(
            vocabulary.size,
            mask_id=vocabulary.mask_id,
            pad_id=vocabulary.pad_id,
            frame_ids=(vocabulary.start_id, vocabulary.end_id),
            special_ids=vocabulary.special_ids,
            stop_ids=vocabulary.stop_ids,
            **settings,
        )

    def examples(self, token_ids, example_numbers, seed):
        """Inputs, labels and weights of rows.

        Args:
            token_ids: integers `(batch, length)`, length at least 2.
            example_numbers, seed: as of `Masking.examples`.

        Returns:
            `(inputs, labels, weights)`: a dictionary of `encoder_token_ids` (with noise) and
            `encoder_padding_mask`, `(batch, length)`, and of `decoder_token_ids` and
            `decoder_padding_mask` (1 = real token), `(batch, length - 1)`, int32; the next tokens,
            int32, and 1 or 0, float32: both `(batch, length - 1)`.
        """
        text, labels, weights = NextTokens(self.vocabulary_size, self.pad_id).examples(
            token_ids, example_numbers, seed
        )
        rows = np.asarray(token_ids).astype("int32", copy=False)
        sources = self.noised(rows, check_example_numbers(example_numbers, rows.shape), seed)
        inputs = {
            "encoder_token_ids": sources,
            "encoder_padding_mask": (sources != self.pad_id).astype("int32"),
            "decoder_token_ids": text["token_ids"],
            "decoder_padding_mask": text["padding_mask"],
        }
        return inputs, labels, weights

    def noised(self, token_ids, numbers, seed):
        """`token_ids` with the noise of example `numbers` and `seed`, int32, padded at the end."""
        if self.permute_sentences:
            tables = self._is_one_of(self.frame_ids), self._is_one_of(self.stop_ids)
            token_ids = permuted_sentences(token_ids, numbers, *tables, seed)
        is_text = ~self._is_one_of(self.special_ids)[token_ids]  # (b, t)
        sizes, place = is_text.sum(axis=1), np.arange(token_ids.shape[1])
        totals = random_counts(seed, "denoising: count", numbers, self.infill_share, sizes)
        bits, keys = (
            random_bits(seed, f"denoising: {what}", numbers[:, np.newaxis], place)
            for what in ("length", "place")
        )
        draws = np.searchsorted(self._limits, bits >> np.uint64(32), side="right")
        found = token_ids.copy()
        for index in np.flatnonzero(totals):
            columns = np.flatnonzero(is_text[index])
            drawn = totals[index], draws[index], keys[index] >> np.uint64(UNUSED_BITS)
            row = self._infilled(token_ids[index], columns, *drawn)
            found[index], found[index, : len(row)] = self.pad_id, row
        return found

    @functools.cached_property
    def _limits(self):
        return poisson_limits(self.mean_span)

    def _is_one_of(self, ids):
        return np.isin(np.arange(self.vocabulary_size), ids)

    def _infilled(self, row, columns, total, draws, keys):
        """Returns a row in which spans of its text, at `columns`, stand behind one mask each."""
        count = min(np.count_nonzero(np.cumsum(draws) < total) + 1, total)
        lengths = draws[:count].copy()
        lengths[-1] += total - lengths.sum()  # the last is cut
        # what is left of the text are items, tokens or spans, of which any may be the spans
        items = np.argsort(keys[: len(columns) - total + count], kind="stable")[:count]
        order = np.argsort(items)
        items, lengths = items[order], lengths[order]
        hidden, masks = np.zeros(len(row), bool), np.zeros(len(row) + 1, "int64")
        shift = items - np.arange(len(items))  # tokens of text before each span, and in none
        span = np.repeat(np.arange(len(items)), lengths)  # of each covered token
        covered = columns[np.arange(len(span)) + shift[span]]
        hidden[covered] = True
        # special tokens may cut a span, each part of which has a mask
        begins = (np.diff(covered, prepend=-2) > 1) | (np.diff(span, prepend=-1) > 0)
        masks[covered[begins]] = 1
        # so that no row becomes longer, there may not be room for all masks of no tokens
        behind = (shift + np.cumsum(lengths))[lengths == 0][: len(span) - masks.sum()]
        np.add.at(masks, np.append(columns, columns[-1:] + 1)[behind], 1)
        repeats = np.stack([masks, np.append((row != self.pad_id) & ~hidden, False)], axis=1)
        tokens = np.stack([np.full_like(masks, self.mask_id), np.append(row, self.pad_id)], axis=1)
        return np.repeat(tokens.ravel(), repeats.ravel())


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
