"""Examples of masked tokens and of pairs: whether two segments stand as they were written."""

import dataclasses

import numpy as np

from keras_tupe.data.rows.counter_rng import random_bits
from keras_tupe.data.rows.masking import Masking, OverMasking

# What a pair can be asked for, and what its class 1 is; class 0 is the pair as it was written.
KINDS = {"next": "the second segment is of another document", "order": "the two are swapped"}


@dataclasses.dataclass(frozen=True)
class MaskedPairs(OverMasking):
    """How rows of two segments become examples of masked tokens and of pairs.

    Equation: a row is [CLS] A [SEP] B [SEP], where B follows A in a document. With a bit y of
    (seed, example number), as often 1 as 0, the example is

        y = 0                     [CLS] A [SEP] B [SEP]
        y = 1, kind "order"       [CLS] B [SEP] A [SEP]
        y = 1, kind "next"        [CLS] A [SEP] B' [SEP]

    where B' is the second segment of the row's partner, of another document and, wherever there is
    one, of as many tokens as B (see `Partners`). Then tokens are masked by `masking`. So each epoch
    has other pairs of the same rows, and an example is a pure function of (seed, example number).

    Differences from the sources: Devlin et al. write pairs down once, with random second segments
    of any length that fits, whose document goes on in the next row. Here nothing but true pairs is
    written down.

    Args:
        masking: the `Masking` of the tokens.
        end_id: id of [SEP], which ends each of the two segments.
        kind: `"next"` or `"order"`.

    Raises:
        ValueError: for another kind, or an end token outside the vocabulary.

    References:
        Devlin et al. BERT. NAACL 2019. Section 3.1, appendix A.2.
        Lan et al. ALBERT. ICLR 2020. Section 3.1.
    """

    masking: Masking
    end_id: int
    kind: str

    def __post_init__(self):
        if self.kind not in KINDS:
            raise ValueError(f"`kind` must be one of {list(KINDS)}. Received: kind={self.kind!r}")
        if not 0 <= self.end_id < self.vocabulary_size:
            raise ValueError(
                f"`end_id` must be from 0 to {self.vocabulary_size - 1}. "
                f"Received: end_id={self.end_id}"
            )

    @classmethod
    def of(cls, rows, kind, masking=None):
        """Returns the rule for prepared rows.

        Args:
            rows: the `PreparedRows`.
            kind: `"next"` or `"order"`.
            masking: the `Masking` of the tokens. Defaults to that of the vocabulary.

        Raises:
            ValueError: if the rows are no pairs, or those of `"order"` are to be used for `"next"`.
        """
        found, vocabulary = rows.record.get("pairs"), rows.vocabulary
        if found != kind and (found, kind) != ("next", "order"):
            needed = "next" if kind == "next" else "order` or `--pairs next"
            raise ValueError(
                f"Rows for pairs of the kind {kind!r} are prepared with `--pairs {needed}`. "
                f"Received: rows with pairs={found!r} in {str(rows.directory)!r}"
            )
        return cls(masking or Masking.of(vocabulary), vocabulary.end_id, kind)

    def pair_labels(self, example_numbers, seed):
        """Returns the classes of examples, int32 `(n,)`: 0 for pairs as they were written.

        Args:
            example_numbers: integers >= 0, `(n,)`.
            seed: integer from 0 to 2**64 - 1.
        """
        return (random_bits(seed, "pairs: label", example_numbers) >> np.uint64(63)).astype("int32")

    def read(self, source, numbers, example_numbers, seed):
        """Reads the rows that examples are made of, and makes their pairs.

        Args:
            source: the rows, see `Rows`; for the kind `"next"` with an attribute `partners`, of
                `Partners`.
            numbers: integers, `(n,)`: the rows.
            example_numbers: integers >= 0, `(n,)`.
            seed: integer from 0 to 2**64 - 1.

        Returns:
            int32, `(n, length)`: still without masks.

        Raises:
            ValueError: for rows that are no pairs.
        """
        rows = np.array(source[numbers])
        changed = np.flatnonzero(self.pair_labels(example_numbers, seed))
        first, second = segments(rows, self.end_id)
        if self.kind == "order":
            parts = (rows, second), (rows, first)
            parts = [(found[changed], span[changed]) for found, span in parts]
        else:
            chosen = source.partners.chosen(
                np.asarray(numbers)[changed], np.asarray(example_numbers)[changed], seed
            )
            others = source[chosen]
            _, span = segments(others, self.end_id)
            room = rows.shape[1] - 3 - (first[changed, 1] - first[changed, 0])
            span[:, 1] = np.minimum(span[:, 1], span[:, 0] + room)
            parts = (rows[changed], first[changed]), (others, span)
        rows[changed] = self._joined(rows[changed, :1], *parts)
        return rows

    def examples(self, token_ids, example_numbers, seed):
        """Inputs, labels and weights of rows that `read` made.

        Args:
            token_ids: integers, `(batch, length)`; a row may be padding alone.
            example_numbers: integers >= 0, `(batch,)`.
            seed: integer from 0 to 2**64 - 1.

        Returns:
            `(inputs, labels, weights)`: the inputs of `mask_rows` and `segment_ids`, int32, 1 for B
            and its end token; and dictionaries of `masked_lm`, as of `mask_rows`, and `pair`:
            the classes, int32, and weights, float32, both `(batch,)`, 0 for rows of padding.

        Raises:
            ValueError, TypeError: as `mask_rows`; or for rows that are no pairs.
        """
        inputs, labels, weights = self.masking.examples(token_ids, example_numbers, seed)
        rows = np.asarray(token_ids)
        is_real = rows[:, 0] != self.pad_id
        _, second = segments(rows[is_real], self.end_id)
        column = np.arange(rows.shape[1])
        segment_ids = np.zeros(rows.shape, "int32")
        segment_ids[is_real] = (column >= second[:, :1]) & (column <= second[:, 1:])
        masked = {name: inputs.pop(name) for name in ["mask_positions"]}
        inputs = {**inputs, "segment_ids": segment_ids, **masked}
        pair = np.where(is_real, self.pair_labels(example_numbers, seed), 0).astype("int32")
        return (
            inputs,
            {"masked_lm": labels, "pair": pair},
            {"masked_lm": weights, "pair": is_real.astype("float32")},
        )

    def _joined(self, start, first, second):
        """Rows of two segments, each given as rows and the spans `(n, 2)` in them."""
        (first, first_span), (second, second_span) = first, second
        length = first.shape[1]
        column = np.arange(length)
        middle = 1 + first_span[:, 1:] - first_span[:, :1]  # of the first end token
        last = middle + 1 + second_span[:, 1:] - second_span[:, :1]
        joined = np.full(first.shape, self.pad_id, "int32")
        taken = np.clip(first_span[:, :1] + column - 1, 0, length - 1)
        joined = np.where(column < middle, np.take_along_axis(first, taken, axis=1), joined)
        taken = np.clip(second_span[:, :1] + column - middle - 1, 0, length - 1)
        is_second = (column > middle) & (column < last)
        joined = np.where(is_second, np.take_along_axis(second, taken, axis=1), joined)
        joined[(column == middle) | (column == last)] = self.end_id
        joined[:, :1] = start
        return joined


def segments(token_ids, end_id):
    """The spans of A and of B, each `(n, 2)`, of rows [CLS] A [SEP] B [SEP], which they must be."""
    rows = np.asarray(token_ids)
    is_end = rows == end_id
    first_end = is_end.argmax(axis=1)
    last_end = rows.shape[1] - 1 - is_end[:, ::-1].argmax(axis=1)
    is_pair = (is_end.sum(axis=1) == 2) & (first_end > 1) & (last_end > first_end + 1)
    if not is_pair.all():
        wrong = rows[np.flatnonzero(~is_pair)[0]]
        raise ValueError(
            "Pairs are made of rows of two segments, each ended by [SEP], such as "
            "`training.prepare --pairs next` makes them. Received: a row with "
            f"{int((wrong == end_id).sum())} [SEP] of id {end_id}: {wrong[:8].tolist()}..."
        )
    ones = np.ones_like(first_end)
    return np.stack([ones, first_end], axis=1), np.stack([first_end + 1, last_end], axis=1)
