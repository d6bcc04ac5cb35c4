"""A block of documents to rows: the one transform that one process and Beam share."""

import numpy as np

from keras_tupe.data import (
    file_hash,
    multiset_hash,
    pack_pairs,
    pack_sentences,
    read_sealed_json,
    split_sentences,
    write_shard,
)
from keras_tupe.data.rows.pairs import segments

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
_OF_PAIRS = ("documents_without_pair", "sentences_left_out")


def no_statistics(pairs=None):
    """The statistics of no text: what sums start with."""
    return dict.fromkeys(_STATISTICS if pairs is None else (*_STATISTICS, *_OF_PAIRS), 0)


def add_statistics(*parts):
    """The sum of the statistics of several blocks, of which there is one at least."""
    return {name: sum(part[name] for part in parts) for name in parts[0]}


def pack_block(documents, tokenizer, length, pairs=None):
    """Packs the documents of a block, which are together in memory.

    Args:
        documents: list of strings, in the order of their hashes.
        tokenizer: a `WordPiece` or `SentencePieceBpe`.
        length: tokens per row.
        pairs: kind of the rows' pairs, or `None` for rows of one segment.

    Returns:
        `(token_ids, statistics, index)`: int32 `(rows, length)`, a dictionary of integers, and of
        pairs of the kind `"next"` int64 `(rows, 2)`: tokens of the second segment, and number of
        the document in the block; otherwise `None`.
    """
    sentences, sentences_of = [], []
    for document in documents:
        found = split_sentences(document)
        sentences.extend(found)
        sentences_of.append(len(found))
    token_ids, sizes = _tokenized(sentences, tokenizer)
    ids = {name: getattr(tokenizer, name) for name in ("start_id", "end_id", "pad_id")}
    packed, index = None, None
    if pairs is not None:
        pieces = iter(np.split(token_ids, np.cumsum(sizes)[:-1]))
        packed = pack_pairs(([next(pieces) for _ in range(n)] for n in sentences_of), length, **ids)
    elif len(token_ids):
        has_tokens = sizes > 0
        numbers = np.repeat(np.arange(len(documents)), sentences_of)[has_tokens]
        opens_document = np.diff(numbers, prepend=-1) != 0
        packed = pack_sentences(token_ids, sizes[has_tokens], opens_document, length, **ids)
    statistics = {
        **no_statistics(pairs),
        "documents": len(documents),
        "words": sum(len(document.split()) for document in documents),
    }
    if packed is None:
        return np.zeros((0, length), "int32"), statistics, None
    rows = packed.token_ids
    statistics |= {
        "sentences": packed.num_sentences,
        "split_sentences": packed.num_split,
        "tokens": packed.num_tokens,
        "unknown_tokens": int((rows == tokenizer.unknown_id).sum()),
        "padding_tokens": int((rows == tokenizer.pad_id).sum()),
        "rows": len(rows),
    }
    if pairs is not None:
        counts = (packed.num_without_pair, packed.num_left)
        statistics |= dict(zip(_OF_PAIRS, counts, strict=True))
    if pairs == "next":
        _, second = segments(rows, tokenizer.end_id)
        index = np.stack([second[:, 1] - second[:, 0], packed.documents], axis=1)
    return rows, statistics, index


def _tokenized(sentences, tokenizer):
    """Returns all tokens in a row, int32, and how many of them each sentence has."""
    token_ids, sizes = [], []
    for start in range(0, max(len(sentences), 1), _SENTENCES_PER_CALL):
        ragged = tokenizer.tokenize(sentences[start : start + _SENTENCES_PER_CALL])
        token_ids.append(ragged.flat_values.numpy())
        sizes.append(ragged.row_lengths().numpy())
    return np.concatenate(token_ids), np.concatenate(sizes)


def write_block(folder, part, block, documents, tokenizer, settings):
    """Packs a block and writes its shard.

    Args:
        folder: where the shard goes, `pathlib.Path`.
        part: name of the split.
        block: its number.
        documents: sorted list of `(digest, text)`.
        tokenizer: as of `pack_block`.
        settings: a `Settings`.

    Returns:
        Facts, a JSON dictionary: `block`, `statistics`, `corpus_hash` (`multiset_hash` of the
        documents), and `sha256` of the files.
    """
    texts = [text for _, text in documents]
    rows, statistics, index = pack_block(texts, tokenizer, settings.length, settings.pairs)
    return {
        "block": block,
        "statistics": statistics,
        "corpus_hash": multiset_hash(digest for digest, _ in documents),
        "sha256": write_shard(folder, part, block, rows, tokenizer.vocabulary_size, index),
    }


def read_facts(path, folder):
    """Returns the facts of a block that an earlier run wrote, or `None` unless all of it is there.

    Args:
        path: of the facts, as `write_sealed_json` wrote them.
        folder: of the shards.
    """
    try:
        facts = read_sealed_json(path)
        is_there = all(file_hash(folder / name) == x for name, x in facts["sha256"].items())
    except (OSError, ValueError, KeyError):
        return None
    return facts if is_there else None


def remove_others(folder, facts):
    """Removes what killed runs have left in a folder of shards.

    Args:
        folder: `pathlib.Path`.
        facts: dictionary from each part to the list of the facts of its blocks.
    """
    known = {name for part in facts.values() for one in part for name in one["sha256"]}
    for path in folder.iterdir():
        if path.name not in known:
            path.unlink()
