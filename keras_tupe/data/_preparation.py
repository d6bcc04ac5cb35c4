"""The record of a directory of prepared rows, read and checked."""

import pathlib

from keras_tupe._json_file import read_json, read_json_object
from keras_tupe.data.dataset_writer import FORMAT, NAME, PREPARATION_FILE, file_hash
from keras_tupe.data.json_record import is_sealed
from keras_tupe.data.prepared_vocabulary import PreparedVocabulary
from keras_tupe.data.word_starts import KINDS

_DATASET_FILE = "dataset_info.json"
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
        hashes, facts = record["sha256"], dict(record["vocabulary"])
        vocabulary = _vocabulary(directory, facts)
        length = record["length"]
        rows = {split: part["rows"] for split, part in record["splits"].items() if part["rows"]}
        consistent = (
            facts["sha256"] == hashes[facts["file"]]
            and vocabulary.special_ids == tuple(sorted({facts[name] for name in _SPECIAL}))
            and vocabulary.kind in KINDS
            and isinstance(length, int)
            and length > 0
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise _damaged(directory, f"it lacks {error}") from error
    if not consistent:
        raise _damaged(directory, "it contradicts itself")
    _check_files(directory, hashes)
    if len(vocabulary.pieces) != vocabulary.size:
        raise _damaged(directory, f"the vocabulary has {len(vocabulary.pieces)} pieces")
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
    info = read_json(directory / _DATASET_FILE)
    shards = {}
    for split in info["splits"]:
        names = sorted(name for name in hashes if name.startswith(f"{NAME}-{split['name']}."))
        sizes = [int(size) for size in split["shardLengths"]]
        if len(names) != len(sizes):
            raise _damaged(directory, f"it differs from {_DATASET_FILE} in the number of shards")
        paths = [directory / name for name in names]
        shards[split["name"]] = list(zip(paths, sizes, strict=True))
    return shards


def _damaged(directory, reason):
    return ValueError(
        f"The record of the prepared rows is damaged: {reason}. Prepare the rows again. "
        f"Received: {str(directory / PREPARATION_FILE)!r}"
    )
