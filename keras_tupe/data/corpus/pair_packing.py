"""Rows of two segments: text of a document, and the text that follows it there."""

import dataclasses
import hashlib

import numpy as np

from keras_tupe.check import integer


@dataclasses.dataclass(frozen=True)
class PackedPairs:
    """Rows of pairs and what went into them."""

    token_ids: np.ndarray  # int32, (rows, length)
    documents: np.ndarray  # int64, (rows,): number of the document each is of, ascending
    num_sentences: int  # with at least one token
    num_split: int  # sentences longer than half a row
    num_tokens: int  # of text in the rows
    num_without_pair: int  # documents of fewer than two sentences
    num_left: int  # sentences, or parts of one, that no other was left to go with


def pack_pairs(documents, length, *, start_id, end_id, pad_id):
    """Packs documents into rows `start A end B end pad ...`, where B follows A in a document.

    Each row takes sentences of one document, in order, as long as they fit. It is cut between two
    of them, drawn uniformly, into A and B (as BERT). A sentence longer than half a row is split
    into equal parts, which go into rows like sentences, but a row is cut inside of a sentence only
    if it has no other. Where one sentence would be left over, the row before it hands it one of
    its own; if it has only two, the sentence is left out.

    Half of the documents, by the hash of their tokens, are packed from their end. Packed from its
    beginning, a row's first sentence is one that did not fit before, so longer than others: A
    would be longer than B, and their order could be told from lengths.

    The arguments are those of `pack_rows`, with `length` at least 5; the `PackedPairs` is a pure
    function of each document, in their order.

    Example:
        >>> documents = [[[11, 12], [13], [14, 15]], [[16]]]
        >>> packed = pack_pairs(documents, 8, start_id=2, end_id=3, pad_id=0)
        >>> packed.token_ids
        array([[ 2, 11, 12,  3, 13, 14, 15,  3]], dtype=int32)
        >>> packed.num_without_pair
        1

    References:
        Devlin et al. BERT. NAACL 2019. Appendix A.2.
    """
    integer("length", length, 5)
    most = (length - 3) // 2  # tokens of a sentence: then any two fit
    rows, of_document = [], []
    num_sentences = num_split = num_without_pair = num_left = 0
    for number, document in enumerate(documents):
        sentences = [np.asarray(sentence, "int32") for sentence in document if len(sentence)]
        num_sentences += len(sentences)
        if len(sentences) < 2:
            num_without_pair += 1
            continue
        num_split += sum(len(sentence) > most for sentence in sentences)
        parts = [
            (part, place == 0)
            for sentence in sentences
            for place, part in enumerate(np.array_split(sentence, -(-len(sentence) // most)))
        ]
        digest = hashlib.sha256(np.concatenate(sentences).astype("<i4")).digest()
        groups = _groups(parts, length - 3, digest)
        num_left += len(parts) - sum(map(len, groups))
        for index, group in enumerate(groups, start=1):
            cuts = [place for place in range(1, len(group)) if group[place][1]]
            cuts = cuts or range(1, len(group))
            cut = cuts[_below(len(cuts), digest, index)]
            first, second = ([part for part, _ in half] for half in (group[:cut], group[cut:]))
            rows.append(np.concatenate([[start_id], *first, [end_id], *second, [end_id]]))
            of_document.append(number)
    token_ids = np.full((len(rows), length), pad_id, "int32")
    for row, text in zip(token_ids, rows, strict=True):
        row[: len(text)] = text
    return PackedPairs(
        token_ids,
        np.array(of_document, "int64"),
        num_sentences,
        num_split,
        sum(len(row) - 3 for row in rows),
        num_without_pair,
        num_left,
    )


def _groups(parts, capacity, digest):
    """The parts of each row, `(tokens, whether they begin a sentence)`, two at least."""
    is_backward = _below(2, digest, 0)
    groups = [[]]
    for part in reversed(parts) if is_backward else parts:
        if sum(len(tokens) for tokens, _ in [*groups[-1], part]) > capacity:
            groups.append([])
        groups[-1].append(part)
    if len(groups[-1]) == 1 and len(groups[-2]) > 2:
        groups[-1].insert(0, groups[-2].pop())
    elif len(groups[-1]) == 1:
        groups.pop()
    return [group[::-1] for group in groups[::-1]] if is_backward else groups


def _below(limit, digest, number):
    """An integer from 0 to `limit - 1`, a pure function of a digest and a number."""
    bits = hashlib.sha256(digest + number.to_bytes(8, "big")).digest()[:8]
    return int.from_bytes(bits, "big") * limit >> 64
