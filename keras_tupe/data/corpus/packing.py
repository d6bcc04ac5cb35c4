"""FULL-SENTENCES rows: whole sentences side by side, across documents, up to a fixed length."""

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
        part: what the documents are, for the message when they are too few.

    Returns:
        A `PackedRows`. Only the last row and rows before a sentence that did not fit hold padding.

    Raises:
        ValueError: if there are not enough tokens for one full row.

    Example:
        >>> documents = [[[11, 12, 13], [14]], [[15, 16]]]
        >>> pack_rows(documents, 6, start_id=2, end_id=3, pad_id=0).token_ids
        array([[ 2, 11, 12, 13, 14,  3],
               [ 2, 15, 16,  3,  0,  0]], dtype=int32)

    References:
        Liu et al. RoBERTa: A Robustly Optimized BERT Pretraining Approach. 2019. Section 4.2.
    """
    integer("length", length, 3)
    flat, sizes, opens_document = _flatten(documents)
    if len(flat) < length - 2:
        raise ValueError(
            f"The {part} is too small for one row of {length} tokens. Give more text (a blank line "
            f"separates documents) or choose shorter rows. Received: tokens={len(flat)}"
        )
    return pack_sentences(
        flat, sizes, opens_document, length, start_id=start_id, end_id=end_id, pad_id=pad_id
    )


def pack_sentences(token_ids, sizes, opens_document, length, *, start_id, end_id, pad_id):
    """`pack_rows` of sentences that lie end to end in one array, `(tokens,)`, one at least.

    `sizes` are the tokens of each, and `opens_document` says which is the first of a document.
    """
    pieces, separators, num_split = _place(sizes.tolist(), opens_document.tolist(), length - 2)
    rows, columns, piece_sizes = np.array(pieces, "int64").T  # (pieces,)
    packed = np.full((rows[-1] + 1, length), pad_id, "int32")
    packed[:, 0] = start_id
    piece_starts = np.cumsum(piece_sizes) - piece_sizes
    shift = np.repeat(rows * length + columns - piece_starts, piece_sizes)
    packed.ravel()[np.arange(len(token_ids)) + shift] = token_ids
    for row, column in separators:
        packed[row, column] = end_id
    last_piece = np.flatnonzero(np.diff(rows, append=rows[-1] + 1))  # of each row
    packed[rows[last_piece], columns[last_piece] + piece_sizes[last_piece]] = end_id
    return PackedRows(packed, len(sizes), num_split, len(token_ids))


def _flatten(documents):
    """All tokens in a row; the size of each sentence, and whether it opens a document."""
    blocks, sizes, opens = [], [], []
    for document in documents:
        sentences = [sentence for sentence in document if len(sentence)]
        sizes.extend(map(len, sentences))
        opens.extend(index == 0 for index in range(len(sentences)))
        # one small array per document: nested Python lists of a whole corpus would not fit
        blocks.append(np.fromiter(itertools.chain.from_iterable(sentences), "int32"))
    flat = np.concatenate(blocks) if blocks else np.zeros(0, "int32")
    return flat, np.array(sizes, "int64"), np.array(opens, bool)


def _place(sizes, opens_document, capacity):
    """`(row, first column, size)` of pieces, `(row, column)` of separators, how many are split."""
    pieces, separators, num_split = [], [], 0
    row = used = 0
    for size, opens in zip(sizes, opens_document, strict=True):
        separator = int(opens and used > 0)
        is_long = size > capacity
        if used + separator + (1 if is_long else size) > capacity:
            row, used, separator = row + 1, 0, 0
        if separator:
            separators.append((row, 1 + used))
            used += 1
        num_split += is_long
        while size:
            if used == capacity:
                row, used = row + 1, 0
            taken = min(size, capacity - used)
            pieces.append((row, 1 + used, taken))
            used += taken
            size -= taken
    return pieces, separators, num_split
