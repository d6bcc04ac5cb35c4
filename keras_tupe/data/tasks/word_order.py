"""A task that needs word order: is a sentence intact, or have two neighbours been exchanged?"""

import dataclasses
import hashlib
import itertools
import re

import numpy as np

from keras_tupe.data.corpus.sentences import split_sentences
from keras_tupe.data.rows.counter_rng import check_seed

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


def word_order_pairs(
    documents, tokenize, *, start_id, end_id, pad_id, seed, length=32, num_pairs=None
):
    """Makes pairs of sentences that differ in nothing but the order of two words.

    In each sentence of 10 to 40 words, one random pair of neighbours that differ (in more than
    case) and have nothing but a space between is exchanged; punctuation stays in place. Kept are
    sentences with at least 12 pieces that fit into a row, if both versions have the same pieces
    in another order. So an encoder without positions gives both rows the same output: it is right
    in exactly half of the cases, whatever it has learned.

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

    Raises:
        ValueError: if `length` is too small, or not one sentence can be used.
    """
    if length < _MIN_PIECES + 2:
        raise ValueError(
            f"`length` must be at least {_MIN_PIECES + 2}, for {_MIN_PIECES} pieces and two "
            f"special tokens. Received: length={length}"
        )
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
                pairs[digest] = (sentence, _exchange(sentence, chosen))
    return [pair for _, pair in sorted(pairs.items())]


def _exchange(sentence, match):
    before, after = sentence[: match.start(1)], sentence[match.end(2) :]
    return f"{before}{match[2]} {match[1]}{after}"
