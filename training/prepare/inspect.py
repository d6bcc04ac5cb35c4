"""Contents of a prepared folder, for people; and whether it is still what was written."""

import os
import pathlib

import numpy as np

from keras_tupe.data import PREPARATION_FILE, PreparedRows, file_hash
from keras_tupe.data.rows.prepared import read_preparation
from training.command.report import table
from training.prepare.rows import TOKENIZERS

_NUM_ROWS, _NUM_PIECES = 3, 30


def statistics(folder):
    """The statistics of a prepared folder, as a table; raises as `read_preparation`."""
    record = _record(folder)
    splits, vocabulary = record["splits"], record["vocabulary"]
    names = list(next(iter(splits.values())))
    rows = [[name.replace("_", " "), *(f"{s[name]:,}" for s in splits.values())] for name in names]
    return (
        f"{folder}: rows of {record['length']} tokens, {vocabulary['kind']} vocabulary of "
        f"{vocabulary['size']:,} pieces\n{table(['', *splits], rows)}\n"
        f"duplicate documents dropped: {record['duplicates']:,}; "
        f"bad documents skipped: {record['skipped']:,}\n"
        f"hash of the documents: {record['corpus_hash'][:16]}"
    )


def describe(folder):
    """Statistics, the command, and some rows as text; raises as `PreparedRows`."""
    record = _record(folder)
    vocabulary = record["vocabulary"]
    path = pathlib.Path(folder) / vocabulary["file"]
    tokenizer = TOKENIZERS[vocabulary["kind"]](path, lowercase=vocabulary["lowercase"])
    lines = [f"made by: {record['command']}", statistics(folder)]
    for split in record["splits"]:
        rows = PreparedRows(folder, split)
        for number, token_ids in enumerate(rows[np.arange(min(_NUM_ROWS, len(rows)))]):
            pieces = " ".join(tokenizer.pieces[token] for token in token_ids[:_NUM_PIECES])
            text = tokenizer.detokenize([token_ids.tolist()]).numpy()[0].decode("utf-8", "replace")
            lines += ["", f"{split} row {number}: {text}", f"it begins with the pieces: {pieces}"]
    return "\n".join(lines)


def verify(folder):
    """A sentence that every file is what was written; a ValueError names those that are not."""
    hashes, folder = _record(folder)["sha256"], pathlib.Path(folder)
    there = {file.name for file in folder.iterdir()} - {PREPARATION_FILE}
    problems = [f"{name} is missing" for name in sorted(hashes.keys() - there)]
    problems += [f"{name} does not belong here" for name in sorted(there - hashes.keys())]
    problems += [
        f"{name} has changed"
        for name in sorted(hashes.keys() & there)
        if not (folder / name).is_file() or file_hash(folder / name) != hashes[name]
    ]
    if problems:
        raise ValueError(
            "The folder is not what was written. Remove it and prepare it again. "
            f"Received: {str(folder)!r}: {'; '.join(problems)}"
        )
    return f"{folder}: all {len(hashes)} files are what was written."


def _record(folder):
    """Returns the record of a folder, with all that is shown of it."""
    record = read_preparation(folder)
    try:
        counts = [record["duplicates"], record["skipped"]]
        counts += [count for split in record["splits"].values() for count in split.values()]
        texts = [record["command"], record["corpus_hash"]]
        kinds = {type(count) for count in counts}, {type(text) for text in texts}
        is_whole = kinds == ({int}, {str}) and record["splits"]
    except (KeyError, AttributeError):
        is_whole = False
    if not is_whole:
        raise ValueError(
            "The record of the folder is damaged, or of another program. Prepare the rows again. "
            f"Received: {os.path.join(folder, PREPARATION_FILE)!r}"
        )
    return record
