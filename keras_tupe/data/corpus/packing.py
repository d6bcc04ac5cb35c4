"""FULL-SENTENCES rows: whole sentences side by side, across documents, up to a fixed length."""

import array
import dataclasses
import itertools

import numpy as np

from keras_tupe.check import integer
from keras_tupe.data.corpus.sentences import split_sentences

_DOCUMENTS_PER_CALL = 1024


@dataclasses.dataclass(frozen=True)
class PackedRows:
    """Rows of token ids and what went into them.

    Args:
        token_ids: int32, `(rows, length)`.
        num_sentences: sentences with at least one token.
        num_split: sentences longer than a row, which were split.
        num_tokens: tokens of text; start, end, separator and padding not counted.
    """

    token_ids: np.ndarray
    num_sentences: int
    num_split: int
    num_tokens: int


def tokenize_documents(documents, tokenize):
    """Yields each document as a list of sentences, each a list of token ids.

    Args:
        documents: iterable of strings.
        tokenize: function of a list of strings that returns one list of ids for each; it is
            called on the sentences of a thousand documents at a time.
    """
    documents = map(split_sentences, documents)
    while block := [*itertools.islice(documents, _DOCUMENTS_PER_CALL)]:
        tokens = iter(tokenize([*itertools.chain.from_iterable(block)]))
        for sentences in block:
            yield [*itertools.islice(tokens, len(sentences))]


def pack_rows(documents, length, *, start_id, end_id, pad_id, part="corpus"):
    """Packs documents into rows `start tokens ... end pad ...`.

    Each row takes whole sentences, in order, as long as they fit. Where a row goes on with the
    next document, an `end_id` stands between the two (RoBERTa's FULL-SENTENCES). A sentence that
    no row can hold is split: it fills the row that is open and as many more as it needs.

    Args:
        documents: iterable of documents, each a list of sentences, each a list of token ids, as
            `tokenize_documents` yields them.
        length: tokens per row, at least 3, special ones included.
        start_id: id of [CLS] or <s>.
        end_id: id of [SEP] or </s>.
        pad_id: id of [PAD] or <pad>.
        part: what the documents are, for the message when they are too few; `None` if few will do.

    Returns:
        A `PackedRows`. Only the last row and rows before a sentence that did not fit hold padding.

    Raises:
        ValueError: if there are not enough tokens for one full row of a `part`.

    Example:
        >>> documents = [[[11, 12, 13], [14]], [[15, 16]]]
        >>> pack_rows(documents, 6, start_id=2, end_id=3, pad_id=0).token_ids
        array([[ 2, 11, 12, 13, 14,  3],
               [ 2, 15, 16,  3,  0,  0]], dtype=int32)

    References:
        Liu et al. RoBERTa: A Robustly Optimized BERT Pretraining Approach. 2019. Section 4.2.
    """
    integer("length", length, 3)
    rows, room = [array.array("i")], length - 2
    num_sentences = num_split = num_tokens = 0
    for document in documents:
        opens_document = True
        for sentence in document:
            size = len(sentence)
            if not size:
                continue
            num_sentences, num_split = num_sentences + 1, num_split + (size > room)
            num_tokens += size
            separator = [end_id] if opens_document and len(rows[-1]) else []
            opens_document = False
            if len(rows[-1]) + len(separator) + (size if size <= room else 1) > room:
                rows.append(array.array("i"))
            else:
                rows[-1].extend(separator)
            while len(sentence):
                if len(rows[-1]) == room:
                    rows.append(array.array("i"))
                left = room - len(rows[-1])
                rows[-1].extend(sentence[:left])
                sentence = sentence[left:]
    if part is not None and num_tokens < room:
        raise ValueError(
            f"The {part} is too small for one row of {length} tokens. Give more text (a blank line "
            f"separates documents) or choose shorter rows. Received: tokens={num_tokens}"
        )
    packed = np.full((len(rows) if num_tokens else 0, length), pad_id, "int32")
    for row, text in zip(packed, rows, strict=False):
        row[: len(text) + 2] = [start_id, *text, end_id]
    return PackedRows(packed, num_sentences, num_split, num_tokens)
