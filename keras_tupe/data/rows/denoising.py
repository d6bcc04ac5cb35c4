"""Examples of denoising: a row with noise in it, and the row as it was, which is to be written."""

import dataclasses
import functools

import numpy as np

from keras_tupe.data.rows._text_noise import infilled_spans, permuted_sentences, poisson_limits
from keras_tupe.data.rows.checks import check_example_numbers
from keras_tupe.data.rows.next_tokens import NextTokens


@dataclasses.dataclass(frozen=True)
class Denoising:
    """How rows become examples of a model that writes a text again from one with noise in it.

    Noise, of a row with n tokens of text:

    1. The sentences of each of its documents come in a random order, all orders alike. A sentence
       ends with a full stop, or where its document or the row ends.
    2. Spans of tokens are taken out, and each leaves **one** mask in its place. Their lengths are
       drawn from the Poisson distribution, until they cover int(infill_share n + U[0, 1)) tokens;
       the last is cut to that. Where they are is uniform: of what is left, any items are as likely
       to be the masks as any others. A span of length 0 is a mask that hides nothing.

    Special tokens and padding stay, and no row becomes longer. The decoder reads the row
    w_0 ... w_n as it was and predicts it one token on: input w_0 ... w_{n-1}, labels w_1 ... w_n,
    the last end token included, with which a text that is written ends. An example is a pure
    function of (seed, example number), whatever the batch.

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

    Raises:
        ValueError: if an id is outside the vocabulary, or a number out of its range.

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
        if not 0 < self.infill_share <= 1:
            raise ValueError(
                "`infill_share` must be above 0 and at most 1, such as 0.3. Received: "
                f"infill_share={self.infill_share}"
            )
        if not 1 <= self.mean_span <= 100:
            raise ValueError(
                f"`mean_span` must be from 1 to 100 tokens. Received: mean_span={self.mean_span}"
            )

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
            example_numbers: integers >= 0, `(batch,)`; the number of each example since the start
                of training, so that a row has other noise in every epoch.
            seed: integer from 0 to 2**64 - 1.

        Returns:
            `(inputs, labels, weights)`: a dictionary of `encoder_token_ids` (with noise) and
            `encoder_padding_mask`, `(batch, length)`, and of `decoder_token_ids` and
            `decoder_padding_mask` (1 = real token), `(batch, length - 1)`, int32; the next tokens,
            int32, and 1 or 0, float32: both `(batch, length - 1)`.

        Raises:
            ValueError, TypeError: as `check_rows`; for rows of one token, or if there is not one
                number per row.
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

    def noised(self, token_ids, example_numbers, seed):
        """Returns rows with noise, int32 `(batch, length)`, padded at the end.

        Args:
            token_ids, example_numbers, seed: as of `examples`, checked.
        """
        numbers = np.asarray(example_numbers)
        if self.permute_sentences:
            tables = self._is_one_of(self.frame_ids), self._is_one_of(self.stop_ids)
            token_ids = permuted_sentences(token_ids, numbers, *tables, seed)
        return infilled_spans(
            token_ids,
            numbers,
            is_special=self._is_one_of(self.special_ids),
            mask_id=self.mask_id,
            pad_id=self.pad_id,
            share=self.infill_share,
            limits=self._limits,
            seed=seed,
        )

    @functools.cached_property
    def _limits(self):
        return poisson_limits(self.mean_span)

    def _is_one_of(self, ids):
        """Returns whether each piece is one of some, bool `(vocabulary_size,)`."""
        return np.isin(np.arange(self.vocabulary_size), ids)
