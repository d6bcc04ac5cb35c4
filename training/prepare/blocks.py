"""A block of documents to rows: the one transform that one process and Beam share."""

import numpy as np

from keras_tupe.data import file_hash, split_sentences, write_shard
from keras_tupe.data.corpus.documents import multiset_hash
from keras_tupe.data.corpus.packing import pack_rows
from keras_tupe.data.corpus.pair_packing import pack_pairs
from keras_tupe.data.rows.json_record import read_sealed_json
from keras_tupe.data.rows.pairs import segments

_SENTENCES_PER_CALL = 10_000
_COUNTS = "documents words sentences split_sentences tokens unknown_tokens padding_tokens rows"
_COUNTS_OF_PAIRS = "documents_without_pair sentences_left_out"


def no_statistics(pairs):
    """The statistics of no text, for rows of pairs of a kind or of none."""
    names = _COUNTS if pairs is None else f"{_COUNTS} {_COUNTS_OF_PAIRS}"
    return dict.fromkeys(names.split(), 0)


def pack_block(documents, tokenizer, length, pairs=None):
    """Packs documents, strings in the order of their hashes, into `(rows, statistics, index)`.

    The index is for pairs of the kind `"next"`, int64 `(rows, 2)`: tokens of the second segment,
    and number of the document in the block.
    """
    sentences, sentences_of = [], []
    for document in documents:
        found = split_sentences(document)
        sentences.extend(found)
        sentences_of.append(len(found))
    token_ids, sizes = _tokenized(sentences, tokenizer)
    ids = {name: getattr(tokenizer, name) for name in ("start_id", "end_id", "pad_id")}
    pieces = iter(np.split(token_ids, np.cumsum(sizes)[:-1]))
    of_documents = ([next(pieces) for _ in range(number)] for number in sentences_of)
    if pairs is not None:
        packed = pack_pairs(of_documents, length, **ids)
    else:
        packed = pack_rows(of_documents, length, **ids, part=None)
    statistics = no_statistics(pairs) | {"documents": len(documents)}
    statistics["words"] = sum(len(document.split()) for document in documents)
    rows, index = packed.token_ids, None
    statistics |= {
        "sentences": packed.num_sentences,
        "split_sentences": packed.num_split,
        "tokens": packed.num_tokens,
        "unknown_tokens": int((rows == tokenizer.unknown_id).sum()),
        "padding_tokens": int((rows == tokenizer.pad_id).sum()),
        "rows": len(rows),
    }
    if pairs is not None:
        statistics["documents_without_pair"] = packed.num_without_pair
        statistics["sentences_left_out"] = packed.num_left
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
    """Packs a block, sorted `(digest, text)`, and writes its shard; returns the facts of it."""
    texts = [text for _, text in documents]
    rows, statistics, index = pack_block(texts, tokenizer, settings.length, settings.pairs)
    return {
        "block": block,
        "statistics": statistics,
        "corpus_hash": multiset_hash(digest for digest, _ in documents),
        "sha256": write_shard(folder, part, block, rows, tokenizer.vocabulary_size, index),
    }


def read_facts(path, folder):
    """The facts of a block that an earlier run wrote, or `None` unless all of it is there."""
    try:
        facts = read_sealed_json(path)
        is_there = all(file_hash(folder / name) == x for name, x in facts["sha256"].items())
    except (OSError, ValueError, KeyError):
        return None
    return facts if is_there else None


def remove_others(folder, facts):
    """Removes what killed runs have left in a folder of shards, by the facts of each part."""
    known = {name for part in facts.values() for one in part for name in one["sha256"]}
    for path in folder.iterdir():
        if path.name not in known:
            path.unlink()
