"""The record of a directory of prepared rows, read and checked."""

import os
import pathlib

from keras_tupe._json_file import read_json_object
from keras_tupe.data.corpus.prepared_vocabulary import PreparedVocabulary
from keras_tupe.data.corpus.word_starts import KINDS
from keras_tupe.data.rows.dataset_writer import FORMAT, NAME, PREPARATION_FILE, file_hash
from keras_tupe.data.rows.json_record import is_sealed

_DATASET_FILE = "dataset_info.json"
_MOST = 2**40  # rows, ids or tokens of a row
_SPECIAL = ("start_id", "end_id", "pad_id", "mask_id", "unknown_id")


def read_preparation(directory):
    """Reads `preparation.json` and checks all that is small: names and the metadata's hashes.

    Shards are only looked for: their content is checked as it is read.

    Args:
        directory: path.

    Returns:
        `(record, vocabulary, shards)`: the dictionary of the file, a `PreparedVocabulary`, and
        for each split a list of `(path, rows)` in the order of the shards.

    Raises:
        FileNotFoundError: if this is no prepared directory, or a file of it is missing.
        ValueError: if a file is not the one that was written, or of another format.
    """
    directory = pathlib.Path(directory)
    record = read_record(directory)
    try:
        hashes, facts = record["sha256"], record["vocabulary"]
        vocabulary = _vocabulary(directory, facts)
        ids = [facts[name] for name in _SPECIAL]
        rows = {split: part["rows"] for split, part in record["splits"].items() if part["rows"]}
        consistent = (
            all(map(_is_file_name, hashes))
            and facts["sha256"] == hashes[facts["file"]]
            and all(map(_is_count, (*rows.values(), record["length"], facts["size"])))
            and all(type(token) is int for token in ids)
            and vocabulary.special_ids == tuple(sorted(set(ids)))
            and vocabulary.kind in KINDS
            and isinstance(vocabulary.lowercase, bool)
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise _damaged(directory, f"it lacks {error}") from error
    if not consistent:
        raise _damaged(directory, "it contradicts itself")
    _check_files(directory, hashes)
    if len(vocabulary.pieces) != vocabulary.size:
        raise _damaged(directory, f"the vocabulary has {len(vocabulary.pieces)} pieces")
    if not 0 <= min(ids) <= max(ids) < vocabulary.size:
        raise _damaged(
            directory, f"the vocabulary of {vocabulary.size} pieces has no id {max(ids)}"
        )
    shards = _shards(directory, hashes)
    if {split: sum(size for _, size in parts) for split, parts in shards.items()} != rows:
        raise _damaged(directory, f"it differs from {_DATASET_FILE} in the number of rows")
    return record, vocabulary, shards


def read_record(directory):
    """Reads `preparation.json`, which must be what was written, to the bit.

    Raises:
        FileNotFoundError: if there is none.
        ValueError: if it is damaged, or of another format.
    """
    directory = pathlib.Path(directory)
    path = directory / PREPARATION_FILE
    if not path.is_file():
        raise FileNotFoundError(_no_record(directory))
    try:
        record = read_json_object(path)
        found = record["format"]
    except KeyError as error:
        raise _damaged(directory, f"it lacks {error}") from None
    except (OSError, ValueError) as error:
        raise _damaged(directory, str(error)) from error
    if type(found) is int and found != FORMAT:
        raise ValueError(
            f"These rows were prepared in another format. This version reads format {FORMAT}: "
            "prepare them again, or use the version that made them. (Format 1 did not tell the "
            "order of the rows; the same command without --runner makes them anew as they were.) "
            f"Received: format={found!r} in {str(path)!r}"
        )
    if not is_sealed(path.read_bytes()):
        raise _damaged(directory, "it is not what was written")
    return record


def _no_record(directory):
    unfinished = directory.absolute().with_name(f"{directory.absolute().name}.unfinished")
    if unfinished.is_dir() or any(directory.glob(f"{NAME}-*")):
        return (
            "The preparation of these rows has not finished. Wait for it, or run the same command "
            f"again: it goes on where it ended. Received: directory={str(directory)!r}"
        )
    return (
        f"Rows are read from a directory that `python -m training.prepare` made; here there is no "
        f"{PREPARATION_FILE}. Received: directory={str(directory)!r}"
    )


def _vocabulary(directory, facts):
    names = ("sha256", "kind", "size", "lowercase", *_SPECIAL)
    values = {name: facts[name] for name in names}
    special = tuple(facts["special_ids"])
    return PreparedVocabulary(directory / facts["file"], **values, special_ids=special)


def _check_files(directory, hashes):
    missing = [name for name in hashes if not (directory / name).is_file()]
    if missing:
        raise FileNotFoundError(
            "Files of the prepared rows are missing or have another name. Put them back, or "
            f"prepare the rows again. Received: directory={str(directory)!r} without {missing[:5]}"
        )
    for name, expected in hashes.items():
        if not name.startswith(f"{NAME}-") and file_hash(directory / name) != expected:
            raise ValueError(
                "A file is not the one that was written with these rows. Put it back, or prepare "
                "the rows again; to find all such files: python -m training.prepare --verify "
                f"{directory}. Received: {str(directory / name)!r}"
            )


def _shards(directory, hashes):
    """The files of each split and their numbers of rows, by TFDS's record, whose hash is right."""
    try:
        splits = read_json_object(directory / _DATASET_FILE)["splits"]
        splits = {split["name"]: [*map(_size, split["shardLengths"])] for split in splits}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _damaged(directory, f"{_DATASET_FILE} is not of rows: {error}") from error
    shards = {}
    for split, sizes in splits.items():
        names = sorted(name for name in hashes if name.startswith(f"{NAME}-{split}."))
        if len(names) != len(sizes):
            raise _damaged(directory, f"it differs from {_DATASET_FILE} in the number of shards")
        shards[split] = [(directory / name, size) for name, size in zip(names, sizes, strict=True)]
    return shards


def _size(text):
    """The rows of a shard, of the text that TFDS writes."""
    if not isinstance(text, str) or not text.isascii() or not text.isdigit():
        raise ValueError(f"a shard of {text!r} rows")
    return int(text)


def _is_count(value):
    return type(value) is int and 0 < value < _MOST


def _is_file_name(name):
    """Whether it is a file of the directory itself, and not one elsewhere."""
    return name == os.path.basename(name) and name not in ("", ".", "..")


def _damaged(directory, reason):
    return ValueError(
        f"The record of the prepared rows is damaged: {reason}. Prepare the rows again. "
        f"Received: {str(directory / PREPARATION_FILE)!r}"
    )
