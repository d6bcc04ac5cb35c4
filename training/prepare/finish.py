"""Rows to the finished data set: written, read back, recorded."""

import numpy as np
import tensorflow_datasets as tfds

from keras_tupe.data import file_hash, order_hash, rows_hash, seal, write_rows
from keras_tupe.data.rows.dataset_writer import pairs_file
from training.prepare import vocabulary
from training.prepare.blocks import add_statistics, no_statistics

_ROWS_PER_READ = 4096


def check_size(statistics, settings):
    """Raises a ValueError if the training text does not fill one row, or there are no pairs."""
    if settings.pairs is not None:
        _check_pairs(statistics, settings)
    if statistics["train"]["tokens"] < settings.length - 2:
        raise ValueError(
            f"The training part is too small for one row of {settings.length} tokens. Give more "
            "text, choose shorter rows (--length) or hold less out (--valid). "
            f"Received: tokens={statistics['train']['tokens']}, "
            f"documents={statistics['train']['documents']}"
        )


def _check_pairs(statistics, settings):
    needed = 2 if settings.pairs == "next" else 1
    number = {1: "one document", 2: "two documents, each a source of the other's random segments,"}
    for part, facts in statistics.items():
        found = facts["documents"] - facts["documents_without_pair"]
        if facts["documents"] and found < needed:
            raise ValueError(
                f"For --pairs {settings.pairs} the {part} part needs {number[needed]} of at least "
                "two sentences. Give longer documents (a blank line separates them), or more of "
                f"them, change --valid, or leave --pairs out. Received: documents of one sentence: "
                f"{facts['documents_without_pair']}, of more: {found}"
            )


def check_complete(statistics, num_documents):
    """Raises a RuntimeError unless every document, of `num_documents`, has been packed once."""
    packed = sum(part["documents"] for part in statistics.values())
    if packed != num_documents:
        raise RuntimeError(
            "Documents were lost or packed twice: this is a mistake of keras_tupe or of the Beam "
            f"runner. Received: {packed} documents packed, {num_documents} read"
        )


def total(facts, pairs=None):
    """The facts of all blocks of a part in one: statistics and hashes, as integers.

    Args:
        facts: list of what `block_facts` returned, in the order of the blocks.
        pairs: kind of the rows' pairs, or `None`.

    Returns:
        A dictionary; of pairs of the kind `"next"` with the array that `pairs_file` names.
    """
    order, num_rows = 0, 0
    for one in facts:
        order += one["order_hash"] + num_rows * one["rows_hash"]  # as behind the rows before
        num_rows += one["statistics"]["rows"]
    return {
        "statistics": add_statistics(no_statistics(pairs), *(one["statistics"] for one in facts)),
        **{name: sum(one[name] for one in facts) % 2**256 for name in ("rows_hash", "corpus_hash")},
        "order_hash": order % 2**256,
        **({"pairs": _pairs_index(facts)} if pairs == "next" else {}),
    }


def _pairs_index(facts):
    """The indices of all blocks in one; documents are numbered from 0, without a gap."""
    blocks = [np.array(one["pairs"], "int64").reshape(-1, 2) for one in facts]
    sizes, documents = np.concatenate([np.zeros((0, 2), "int64"), *blocks]).T
    block = np.repeat(np.arange(len(blocks)), [len(one) for one in blocks])
    keys = np.stack([block, documents], axis=1)
    numbers = np.unique(keys, axis=0, return_inverse=True)[1]
    return np.stack([sizes, numbers.reshape(-1)], axis=1)


def write(folder, packed, settings, bar):
    """Writes the shards.

    Args:
        folder: an empty folder, `pathlib.Path`.
        packed: dictionary of part -> list of `PackedBlock`.
        settings: a `Settings`.
        bar: function that wraps an iterable of the blocks' rows.

    Raises:
        OSError: if the disk is full.
    """
    splits = {part: (block.rows() for block in blocks) for part, blocks in packed.items()}
    write_rows(
        folder, splits, settings.length, rows_per_shard=settings.rows_per_shard, progress=bar
    )


def check_rows(folder, parts):
    """Reads all rows back.

    Args:
        folder: the data set.
        parts: dictionary of part -> what `total` returned.

    Raises:
        OSError: if they are not the rows that were packed, in the order of the blocks.
    """
    builder = tfds.builder_from_directory(folder)
    for part, facts in parts.items():
        if _read_hash(builder, part) != facts["order_hash"]:
            raise OSError(
                f"The rows that were read back are not those packed. Is the disk full or broken? "
                f"Remove the folder of the unfinished work and prepare the rows again. "
                f"Received: part={part!r}, folder={str(folder)!r}"
            )


def record(folder, tokenizer, settings, facts):
    """Adds the vocabulary and `preparation.json`.

    Args:
        folder: the data set.
        tokenizer: the tokenizer.
        settings: a `Settings`.
        facts: dictionary of `command`, `fingerprint`, `duplicates`, `problems` (their state) and
            `parts` (part -> what `total` returned).
    """
    tokenizer.save(folder / tokenizer.file_name)
    for name, part in facts["parts"].items():
        if "pairs" in part and len(part["pairs"]):
            np.save(folder / pairs_file(name), part["pairs"])
    if facts["problems"]["count"]:
        text = "".join(f"{message}\n" for message in facts["problems"]["messages"])
        (folder / "skipped.txt").write_text(text, "utf-8", "surrogateescape")  # file names
    parts = facts["parts"]
    corpus = sum(part["corpus_hash"] for part in parts.values()) % 2**256
    vocabulary_hash = file_hash(folder / tokenizer.file_name)
    seal(
        folder,
        {
            "command": facts["command"],
            "length": settings.length,
            **({} if settings.pairs is None else {"pairs": settings.pairs}),
            "vocabulary": vocabulary.facts(tokenizer, settings, vocabulary_hash),
            "splits": {
                name: {
                    **part["statistics"],
                    **{key: f"{part[key]:064x}" for key in ("rows_hash", "order_hash")},
                }
                for name, part in parts.items()
                if part["statistics"]["rows"]
            },
            "duplicates": facts["duplicates"],
            "skipped": facts["problems"]["count"],
            "corpus_hash": f"{corpus:064x}",
            "fingerprint": facts["fingerprint"],
        },
    )


def _read_hash(builder, part):
    """The `order_hash` of all rows of a split on disk; 0 if there is no such split."""
    if part not in builder.info.splits:
        return 0
    source = builder.as_data_source(split=part)
    result = 0
    for start in range(0, len(source), _ROWS_PER_READ):
        examples = source.__getitems__(range(start, min(start + _ROWS_PER_READ, len(source))))
        rows = [example["token_ids"] for example in examples]
        result += order_hash(rows) + start * rows_hash(rows)
    return result % 2**256
