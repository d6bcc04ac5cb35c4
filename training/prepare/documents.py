"""Cleaned documents on disk, in buckets by their hash."""

import contextlib
import hashlib
import json
import shutil

from keras_tupe.data import (
    block_number,
    clean_text,
    document_digest,
    is_held_out,
    read_sealed_json,
    read_source,
    write_sealed_json,
)
from training.prepare.problems import Problems, blank

NUM_BUCKETS = 256
PARTS = ("train", "valid")

_RECORD = "read.json"  # written last
_BUFFER_BYTES = 2**18  # of each bucket


def read_documents(sources, settings, folder, bar):
    """Reads and cleans all documents into buckets; one that was not finished begins anew.

    Args:
        sources: list of `Source`.
        settings: a `Settings`.
        folder: `pathlib.Path`, made.
        bar: a bar of bytes.

    Returns:
        The `Documents`.

    Raises:
        ValueError: at the first problem, unless problems are skipped.
    """
    if (folder / _RECORD).exists():
        return Documents(folder)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    problems = Problems(settings.skip_bad)
    buffers = [bytearray() for _ in range(NUM_BUCKETS)]
    hashes = [hashlib.sha256() for _ in range(NUM_BUCKETS)]

    def flush(bucket):
        with _path(folder, bucket).open("ab") as file:
            file.write(buffers[bucket])
        hashes[bucket].update(buffers[bucket])
        buffers[bucket].clear()

    for source in sources:
        for document in read_source(
            source, settings.text_field, settings.max_document_bytes, advance=bar.update
        ):
            text = "" if document.problem else clean_text(document.text)
            if not text:
                problems.add(document.message or blank(document))
                continue
            bucket = document_digest(text)[8]
            buffers[bucket] += json.dumps(text).encode("ascii") + b"\n"
            if len(buffers[bucket]) >= _BUFFER_BYTES:
                flush(bucket)
    for bucket in range(NUM_BUCKETS):
        flush(bucket)
    record = {"problems": problems.state, "sha256": [found.hexdigest() for found in hashes]}
    write_sealed_json(folder / _RECORD, record)
    return Documents(folder)


class Documents:
    """The documents in a folder, without duplicates.

    Args:
        folder: that `read_documents` filled.

    Attributes:
        problems: state of the `Problems` of reading.

    Raises:
        ValueError: if its record is damaged; all methods, if a bucket is not what was written.
    """

    def __init__(self, folder):
        self._folder, self._last = folder, (None, None)
        with refused_if_damaged(folder / _RECORD):
            record = read_sealed_json(folder / _RECORD)
            self._hashes, self.problems = record["sha256"], record["problems"]

    def bucket(self, number):
        """Returns `(documents, count)`: sorted `(digest, text)`, and how many were read."""
        if self._last[0] != number:
            path = _path(self._folder, number)
            with refused_if_damaged(path):
                content = path.read_bytes()
                if hashlib.sha256(content).hexdigest() != self._hashes[number]:
                    raise ValueError("it is not what was written")
            texts = [json.loads(line) for line in content.splitlines()]
            unique = sorted({document_digest(text): text for text in texts}.items())
            self._last = number, (unique, len(texts))
        return self._last[1]

    def block(self, part, block, num_blocks, held_out):
        """Returns the documents of one block of one part, sorted `(digest, text)`.

        The byte that chooses the bucket is the first of the number that chooses the block, so a
        block is a number of neighbouring buckets, or a part of one.
        """
        first = block * NUM_BUCKETS // num_blocks
        end = max((block + 1) * NUM_BUCKETS // num_blocks, first + 1)
        return sorted(
            (digest, text)
            for bucket in range(first, end)
            for digest, text in self.bucket(bucket)[0]
            if part_of(digest, held_out) == part and block_number(digest, num_blocks) == block
        )


def part_of(digest, held_out):
    """Returns the part, of `PARTS`, that a document belongs to."""
    return "valid" if is_held_out(digest, held_out) else "train"


@contextlib.contextmanager
def refused_if_damaged(path):
    """Lets a file of the unfinished work that is not what was written be told in a sentence."""
    try:
        yield
    except (OSError, ValueError, KeyError):
        raise ValueError(
            "The unfinished work on disk was damaged, perhaps by a loss of power, and is removed. "
            f"Run the same command again. Received: {str(path)!r}"
        ) from None


def _path(folder, bucket):
    return folder / f"{bucket:02x}.jsonl"
