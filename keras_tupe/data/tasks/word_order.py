"""A task that needs word order: is a sentence intact, or have two neighbours been exchanged?"""

import dataclasses
import hashlib
import itertools
import re

import numpy as np

from keras_tupe.check import integer
from keras_tupe.data.corpus.sentences import split_sentences
from keras_tupe.data.rows.counter_rng import check_seed, permute
from keras_tupe.data.rows.rows import SharedBatches, checked_step

_MIN_WORDS, _MAX_WORDS = 10, 40
_MIN_PIECES = 12
_SENTENCES_PER_CALL = 4096
# Two words with one space between. Punctuation before the first and after the second stays put.
_NEIGHBOURS = re.compile(r"(?<![^\s(\[\"'])([^\W\d_]+) (?=([^\W\d_]+)[.,;:!?)\]\"']*(?:\s|$))")


@dataclasses.dataclass(frozen=True)
class WordOrderPairs:
    """Rows of the word-order task; rows 2i and 2i + 1 are one sentence, intact and disturbed.

    Args:
        token_ids: int32, `(2 * pairs, length)`.
        padding_mask: int32, `(2 * pairs, length)`, 1 = real token.
        labels: int32, `(2 * pairs,)`: 0 intact, 1 disturbed.
        texts: list of the `2 * pairs` sentences.
    """

    token_ids: np.ndarray
    padding_mask: np.ndarray
    labels: np.ndarray
    texts: list


class WordOrderRows(SharedBatches):
    """Training batches of the word-order task, for `tf_dataset`: both rows of a pair in one batch.

    Each epoch is a new random order of all pairs; those left over, less than a batch, are left
    out. Batch number `step`, over all epochs, depends on `seed` and `step` alone.

    Args:
        pairs: a `WordOrderPairs`.
        batch_size: rows per batch, even, at least 2; if there are fewer rows, all of them.
        seed: integer from 0 to 2**64 - 1.

    Attributes:
        batch_size: rows per batch.
        num_batches: batches of an epoch.

    Example:
        >>> ids = np.arange(5, 35, dtype="int32").reshape(6, 5)
        >>> pairs = WordOrderPairs(ids, np.ones_like(ids), np.tile([0, 1], 3), [])
        >>> rows = WordOrderRows(pairs, batch_size=4, seed=0)
        >>> inputs, labels, weights = rows.batch(1000)
        >>> inputs["token_ids"].shape, labels.tolist(), weights.tolist()
        ((4, 5), [0, 1, 0, 1], [1.0, 1.0, 1.0, 1.0])
    """

    def __init__(self, pairs, *, batch_size, seed):
        integer("batch_size", batch_size, 2, even=True)  # both rows of each pair
        super().__init__(min(batch_size, len(pairs.labels)), seed)
        self._pairs, self.num_batches = pairs, len(pairs.labels) // self.batch_size

    def batch(self, step):
        """Batch number `step` of training, any: `(inputs, labels, weights)`.

        Inputs are `token_ids` and `padding_mask`, int32 `(batch, length)`; labels int32 and weights
        float32, all 1, `(batch,)`.
        """
        pairs, size = self._pairs, self._whole // 2  # pairs of a batch
        numbers = checked_step(step) * size + np.arange(size)
        epochs, places = np.divmod(numbers, self.num_batches * size)
        count = len(pairs.labels) // 2
        chosen = permute(self.seed, "word order: pairs", epochs, places, count)
        rows = (2 * chosen[:, np.newaxis] + [0, 1]).ravel()[self._part]
        inputs = {"token_ids": pairs.token_ids[rows], "padding_mask": pairs.padding_mask[rows]}
        return inputs, pairs.labels[rows], np.ones(len(rows), "float32")


def word_order_pairs(
    documents, tokenize, *, start_id, end_id, pad_id, seed, length=32, num_pairs=None
):
    """Makes pairs of sentences that differ in nothing but the order of two words.

    In each sentence of 10 to 40 words, one random pair of neighbours that differ (in more than
    case) and have nothing but a space between is exchanged. Kept are sentences with at least 12
    pieces that fit into a row, if both versions have the same pieces in another order. So an
    encoder without positions is right in exactly half of the cases, whatever it has learned.

    The choice depends on the seed and the sentence alone. Repeated sentences are dropped. The
    pairs come in an order given by the seed, so the first `num_pairs` are a random sample.

    Args:
        documents: iterable of strings.
        tokenize: function of a list of strings that returns one list of token ids for each.
        start_id: id of [CLS] or <s>.
        end_id: id of [SEP] or </s>.
        pad_id: id of [PAD] or <pad>.
        seed: integer from 0 to 2**64 - 1.
        length: tokens per row, at least 14. Defaults to 32: sentences of 12 to 30 pieces.
        num_pairs: at most so many pairs, or `None` for all.

    Returns:
        A `WordOrderPairs`. Keep rows 2i and 2i + 1 in the same batch.
    """
    integer("length", length, _MIN_PIECES + 2)
    candidates = _exchanged(documents, check_seed(seed))
    usable = list(itertools.islice(_usable(candidates, tokenize, length - 2), num_pairs))
    if not usable:
        raise ValueError(
            f"The word-order task needs sentences of {_MIN_WORDS} to {_MAX_WORDS} words that fit "
            "into a row; give more text or longer rows. "
            f"Received: {len(candidates)} such sentences, length={length}, num_pairs={num_pairs}"
        )
    rows = [[start_id, *pieces, end_id] for _, both in usable for pieces in both]
    sizes = np.array([len(row) for row in rows])
    real = np.arange(length) < sizes[:, np.newaxis]
    token_ids = np.full(real.shape, pad_id, "int32")
    token_ids[real] = np.concatenate(rows)
    labels = np.arange(len(rows), dtype="int32") % 2
    texts = [text for pair, _ in usable for text in pair]
    return WordOrderPairs(token_ids, real.astype("int32"), labels, texts)


def _usable(candidates, tokenize, max_pieces):
    """Yields `(texts, token lists)` of the pairs that make good rows."""
    for first in range(0, len(candidates), _SENTENCES_PER_CALL):
        block = candidates[first : first + _SENTENCES_PER_CALL]
        token_lists = tokenize([text for pair in block for text in pair])
        for pair, intact, disturbed in zip(block, token_lists[::2], token_lists[1::2], strict=True):
            same_pieces = sorted(intact) == sorted(disturbed)
            if same_pieces and intact != disturbed and _MIN_PIECES <= len(intact) <= max_pieces:
                yield pair, (intact, disturbed)


def _exchanged(documents, seed):
    """All `(sentence, sentence with two words exchanged)`, in the order of the seeded hash."""
    pairs = {}
    for document in documents:
        for sentence in split_sentences(document):
            if not _MIN_WORDS <= len(sentence.split()) <= _MAX_WORDS:
                continue
            found = _NEIGHBOURS.finditer(sentence)
            neighbours = [match for match in found if match[1].lower() != match[2].lower()]
            if neighbours:
                digest = hashlib.sha256(f"{seed} {sentence}".encode()).digest()
                chosen = neighbours[int.from_bytes(digest[:8], "big") % len(neighbours)]
                before, after = sentence[: chosen.start(1)], sentence[chosen.end(2) :]
                pairs[digest] = (sentence, f"{before}{chosen[2]} {chosen[1]}{after}")
    return [pair for _, pair in sorted(pairs.items())]
