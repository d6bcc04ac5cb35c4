"""A block of documents to rows: the one transform that one process and Beam share."""

import numpy as np

from keras_tupe.data import (
    multiset_hash,
    order_hash,
    pack_sentences,
    rows_hash,
    split_sentences,
)

_SENTENCES_PER_CALL = 10_000
_STATISTICS = (
    "documents",
    "words",
    "sentences",
    "split_sentences",
    "tokens",
    "unknown_tokens",
    "padding_tokens",
    "rows",
)


def no_statistics():
    """The statistics of no text: what sums start with."""
    return dict.fromkeys(_STATISTICS, 0)


def add_statistics(*parts):
    """The sum of the statistics of several blocks."""
    return {name: sum(part[name] for part in parts) for name in _STATISTICS}


def pack_block(documents, tokenizer, length, advance=None):
    """Packs the documents of a block, which are together in memory.

    Args:
        documents: list of strings, in the order of their hashes.
        tokenizer: a `WordPiece` or `SentencePieceBpe`.
        length: tokens per row.
        advance: function of the share that is done, called now and then; by default there is none.

    Returns:
        `(token_ids, statistics)`: int32 `(rows, length)`, and a dictionary of integers.
    """
    sentences, document_numbers = [], []
    for number, document in enumerate(documents):
        found = split_sentences(document)
        sentences.extend(found)
        document_numbers.extend([number] * len(found))
    token_ids, sizes = _tokenized(sentences, tokenizer, advance)
    has_tokens = sizes > 0
    numbers = np.array(document_numbers, "int64")[has_tokens]
    opens_document = np.diff(numbers, prepend=-1) != 0
    statistics = {
        **no_statistics(),
        "documents": len(documents),
        "words": sum(len(document.split()) for document in documents),
    }
    if not len(token_ids):
        return np.zeros((0, length), "int32"), statistics
    packed = pack_sentences(
        token_ids,
        sizes[has_tokens],
        opens_document,
        length,
        start_id=tokenizer.start_id,
        end_id=tokenizer.end_id,
        pad_id=tokenizer.pad_id,
    )
    rows = packed.token_ids
    statistics |= {
        "sentences": packed.num_sentences,
        "split_sentences": packed.num_split,
        "tokens": packed.num_tokens,
        "unknown_tokens": int((token_ids == tokenizer.unknown_id).sum()),
        "padding_tokens": int((rows == tokenizer.pad_id).sum()),
        "rows": len(rows),
    }
    return rows, statistics


def _tokenized(sentences, tokenizer, advance):
    """Returns all tokens in a row, int32, and how many of them each sentence has."""
    token_ids, sizes = [], []
    for start in range(0, max(len(sentences), 1), _SENTENCES_PER_CALL):
        if start and advance is not None:
            advance(start / len(sentences))
        ragged = tokenizer.tokenize(sentences[start : start + _SENTENCES_PER_CALL])
        token_ids.append(ragged.flat_values.numpy())
        sizes.append(ragged.row_lengths().numpy())
    return np.concatenate(token_ids), np.concatenate(sizes)


def block_facts(rows, statistics, digests):
    """What is told of a block, as a JSON dictionary.

    Args:
        rows, statistics: what `pack_block` returned.
        digests: iterable of bytes, the hashes of its documents.
    """
    return {
        "statistics": statistics,
        "rows_hash": rows_hash(rows),
        "order_hash": order_hash(rows),
        "corpus_hash": multiset_hash(digests),
    }
