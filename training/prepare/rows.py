"""Documents to rows: the vocabulary, and the one transform that one process and Beam share."""

import functools
import pathlib

import numpy as np

from keras_tupe.data import (
    WordCounts,
    file_hash,
    split_sentences,
    wordpiece_from_counts,
    wordpiece_words,
    write_shard,
)
from keras_tupe.data.corpus.documents import multiset_hash
from keras_tupe.data.corpus.packing import pack_sentences
from keras_tupe.data.corpus.pair_packing import pack_pairs
from keras_tupe.data.corpus.vocabulary import sentencepiece_bpe_from_counts
from keras_tupe.data.rows.pairs import segments
from keras_tupe.tokenizers import SentencePieceBpe, WordPiece
from training.prepare.settings import vocabulary_size

TOKENIZERS = {"wordpiece": WordPiece, "sentencepiece": SentencePieceBpe}
_SENTENCES_PER_CALL = 10_000
_COUNTS = "documents words sentences split_sentences tokens unknown_tokens padding_tokens rows"
_COUNTS_OF_PAIRS = "documents_without_pair sentences_left_out"
_words = functools.cache(wordpiece_words)


# === Vocabulary ===


def word_counts(settings):
    """An empty `WordCounts` for the kind of vocabulary that is asked for."""
    return WordCounts(_words(settings.lowercase) if settings.tokenizer == "wordpiece" else None)


def train_vocabulary(counts, settings):
    """The tokenizer of a vocabulary that is trained on words, which must be enough."""
    if not counts:
        raise ValueError(
            "No document of the training part was sampled for the vocabulary. Give more text, "
            "raise --vocabulary-words or lower --valid. "
            f"Received: vocabulary_words={settings.vocabulary_words}, valid={settings.valid}"
        )
    size = vocabulary_size(settings)
    if settings.tokenizer == "wordpiece":
        return WordPiece(wordpiece_from_counts(counts, size), lowercase=settings.lowercase)
    model = sentencepiece_bpe_from_counts(counts, size, settings.lowercase)
    return SentencePieceBpe(model, lowercase=settings.lowercase)


def load_vocabulary(path, settings):
    """The tokenizer of a vocabulary file; raises as the tokenizer's class does."""
    return TOKENIZERS[settings.tokenizer](pathlib.Path(path), lowercase=settings.lowercase)


@functools.cache
def vocabulary_of_bytes(content, settings):
    """The tokenizer of the content of a vocabulary file: what Beam sends to its workers."""
    if settings.tokenizer == "wordpiece":
        content = content.decode("utf-8").splitlines()
    return TOKENIZERS[settings.tokenizer](content, lowercase=settings.lowercase)


# === Blocks ===


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
    packed, index = None, None
    if pairs is not None:
        pieces = iter(np.split(token_ids, np.cumsum(sizes)[:-1]))
        packed = pack_pairs(([next(pieces) for _ in range(n)] for n in sentences_of), length, **ids)
    elif len(token_ids):
        has_tokens = sizes > 0
        numbers = np.repeat(np.arange(len(documents)), sentences_of)[has_tokens]
        opens_document = np.diff(numbers, prepend=-1) != 0
        packed = pack_sentences(token_ids, sizes[has_tokens], opens_document, length, **ids)
    statistics = no_statistics(pairs) | {"documents": len(documents)}
    statistics["words"] = sum(len(document.split()) for document in documents)
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


# === All blocks ===


def finished(folder, facts, tokenizer, settings, found):
    """Checks the blocks, adds the vocabulary and the bad documents, and returns the record.

    The `facts` of each part are what `write_block` returned, and `found` is what was read:
    `documents`, `duplicates` and `problems`. Without rows or pairs it is a ValueError.
    """
    known = {name for part in facts.values() for one in part for name in one["sha256"]}
    for path in folder.iterdir():
        if path.name not in known:  # what killed runs have left
            path.unlink()
    names = no_statistics(settings.pairs)
    statistics = {
        part: {name: sum(one["statistics"][name] for one in blocks) for name in names}
        for part, blocks in facts.items()
    }
    check_complete(statistics, found["documents"])
    _check_size(statistics, settings)
    tokenizer.save(folder / tokenizer.file_name)
    problems = found["problems"]
    if problems["count"]:
        text = "".join(f"{message}\n" for message in problems["messages"])
        (folder / "skipped.txt").write_text(text, "utf-8", "surrogateescape")  # file names
    corpus = sum(one["corpus_hash"] for part in facts.values() for one in part) % 2**256
    attributes = ("lowercase", "start_id", "end_id", "pad_id", "mask_id", "unknown_id")
    return {
        "length": settings.length,
        **({} if settings.pairs is None else {"pairs": settings.pairs}),
        "vocabulary": {
            "kind": settings.tokenizer,
            "file": tokenizer.file_name,
            "sha256": file_hash(folder / tokenizer.file_name),
            "size": tokenizer.vocabulary_size,
            **{name: getattr(tokenizer, name) for name in attributes},
            "special_ids": list(tokenizer.special_ids),
        },
        "splits": {part: counts for part, counts in statistics.items() if counts["rows"]},
        "duplicates": found["duplicates"],
        "skipped": problems["count"],
        "corpus_hash": f"{corpus:064x}",
    }


def check_complete(statistics, num_documents):
    """Raises a RuntimeError unless every document, of `num_documents`, has been packed once."""
    packed = sum(part["documents"] for part in statistics.values())
    if packed != num_documents:
        raise RuntimeError(
            "Documents were lost or packed twice: this is a mistake of keras_tupe or of the Beam "
            f"runner. Received: {packed} documents packed, {num_documents} read"
        )


def _check_size(statistics, settings):
    needed = 2 if settings.pairs == "next" else 1
    number = {1: "one document", 2: "two documents, each a source of the other's random segments,"}
    for part, counts in statistics.items() if settings.pairs else ():
        alone = counts["documents_without_pair"]
        if counts["documents"] and counts["documents"] - alone < needed:
            raise ValueError(
                f"For --pairs {settings.pairs} the {part} part needs {number[needed]} of at least "
                "two sentences. Give longer documents (a blank line separates them), or more of "
                "them, change --valid, or leave --pairs out. Received: documents of one sentence: "
                f"{alone}, of more: {counts['documents'] - alone}"
            )
    counts = statistics["train"]
    if counts["tokens"] < settings.length - 2:
        raise ValueError(
            f"The training part is too small for one row of {settings.length} tokens. Give more "
            "text, choose shorter rows (--length) or hold less out (--valid). "
            f"Received: tokens={counts['tokens']}, documents={counts['documents']}"
        )
