"""Packed rows to a TFDS data set of ArrayRecord shards, and the record of how they were made."""

import errno
import hashlib
import os
import pathlib

import numpy as np

from keras_tupe.data.corpus.placement import multiset_hash, sequence_hash
from keras_tupe.data.rows.json_record import write_sealed_json

NAME = "packed_rows"
VERSION = "1.0.0"
# Name of the file that says what a folder of prepared rows holds; `seal` writes it last.
PREPARATION_FILE = "preparation.json"
FORMAT = 2  # 1 had no seal, and did not tell the order of the rows

_ROWS_PER_CALL = 4096
_FULL_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_READ_BYTES = 2**20


def row_features(length):
    """The features of a row, as TFDS describes them: `token_ids`, int32, `(length,)`, as bytes.

    Args:
        length: tokens per row.
    """
    import tensorflow_datasets as tfds

    return tfds.features.FeaturesDict(
        {
            "token_ids": tfds.features.Tensor(
                shape=(length,), dtype=np.int32, encoding=tfds.features.Encoding.BYTES
            )
        }
    )


def rows_info(builder, length, *, disable_shuffling=False):
    """TFDS's description of the data set, for a builder of it or its `DatasetIdentity`.

    Args:
        builder: the builder, or the identity.
        length: tokens per row.
        disable_shuffling: whether rows written by Beam keep the order of their keys.
    """
    import tensorflow_datasets as tfds

    return tfds.core.DatasetInfo(
        builder=builder,
        features=row_features(length),
        description="Rows of whole sentences for masked language models, made by keras_tupe.",
        disable_shuffling=disable_shuffling,
    )


def write_rows(folder, splits, length, *, rows_per_shard=2**17, progress=iter):
    """Writes the ArrayRecord shards and the metadata of a TFDS data set.

    Equal rows in equal order give equal files.

    Args:
        folder: an empty folder.
        splits: mapping of the names of the splits to iterables of int32 arrays `(rows, length)`.
            A split without rows is not written.
        length: tokens per row.
        rows_per_shard: rows of each shard but the last. Defaults to 131,072 (256 MiB at 512
            tokens, before compression).
        progress: function that wraps the iterable of each split's blocks, such as `tqdm.tqdm`.

    Returns:
        Dictionary of the number of rows per split.

    Raises:
        OSError: if the disk is full.
    """
    import tensorflow_datasets as tfds

    identity = tfds.core.dataset_info.DatasetIdentity(
        name=NAME, version=tfds.core.Version(VERSION), data_dir=os.fspath(folder), module_name=""
    )
    writer = tfds.core.SequentialWriter(
        rows_info(identity, length), rows_per_shard, file_format="array_record"
    )
    try:
        return _write(writer, splits, progress)
    except RuntimeError as error:  # what ArrayRecord raises, with the system's words in it
        code = next((c for c in _FULL_DISK if os.strerror(c) in str(error)), errno.EIO)
        raise OSError(code, os.strerror(code), os.fspath(folder)) from error


def _write(writer, splits, progress):
    sizes = {}
    for split, blocks in splits.items():
        size = 0
        for block in progress(blocks):
            if len(block) and not size:
                writer.initialize_splits([split])
            for start in range(0, len(block), _ROWS_PER_CALL):
                rows = block[start : start + _ROWS_PER_CALL]
                writer.add_examples({split: [{"token_ids": row} for row in rows]})
            size += len(block)
        if size:
            sizes[split] = size
    writer.close_all()
    return sizes


def pairs_file(split):
    """Name of the file beside the shards that tells of each row of pairs of what document it is.

    Args:
        split: name of the split. The file is an array, int64 `(rows, 2)`: tokens of the second
            segment, and number of the document.
    """
    return f"pairs-{split}.npy"


def seal(folder, facts):
    """Writes `preparation.json`: what a data set holds, the hash of each of its files, and its own.

    Args:
        folder: the data set, with all of its other files.
        facts: dictionary for JSON; `format`, `sha256` and `seal` are added.
    """
    folder = pathlib.Path(folder)
    hashes = {file.name: file_hash(file) for file in sorted(folder.iterdir())}
    record = {"format": FORMAT, **facts, "sha256": hashes}
    write_sealed_json(folder / PREPARATION_FILE, record)


def file_hash(path):
    """The SHA-256 of a file, in hexadecimal digits.

    Args:
        path: path of the file.
    """
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while content := file.read(_READ_BYTES):
            digest.update(content)
    return digest.hexdigest()


def rows_hash(rows):
    """A number that names a multiset of rows, whatever their order: hashes of parts add up.

    Args:
        rows: integers, `(rows, length)`.

    Returns:
        The `multiset_hash` of the SHA-256 of each row as little-endian int32.
    """
    return multiset_hash(_row_digests(rows))


def order_hash(rows):
    """A number that names rows in their order.

    Args:
        rows: integers, `(rows, length)`.

    Returns:
        The `sequence_hash` of the SHA-256 of each row as little-endian int32.
    """
    return sequence_hash(_row_digests(rows))


def _row_digests(rows):
    return (hashlib.sha256(row).digest() for row in np.ascontiguousarray(rows, dtype="<i4"))
