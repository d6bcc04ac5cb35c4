"""Cleaned documents on disk, in buckets by their hash."""

import contextlib
import hashlib
import json
import shutil

from keras_tupe.data import clean_text, read_source
from keras_tupe.data.corpus.documents import digest_fraction, document_digest, is_held_out
from keras_tupe.data.rows.json_record import read_sealed_json, write_sealed_json

NUM_BUCKETS = 256
PARTS = ("train", "valid")

_RECORD = "read.json"  # written last
_BUFFER_BYTES = 2**18  # of each bucket
_MAX_LISTED = 10_000


def read_documents(sources, settings, folder, bar):
    """Reads and cleans all documents into buckets; a reading that did not end begins anew."""
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
        for text, problem in cleaned(source, settings, bar.update):
            if problem:
                problems.add(problem)
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


def cleaned(source, settings, advance=None):
    """Yields `(text, what is wrong with it)` of each document of a source, one of them empty."""
    for document in read_source(source, settings.text_field, settings.max_document_bytes, advance):
        text = "" if document.problem else clean_text(document.text)
        blank = f"The document is empty or blank. Received: {document.place}"
        yield text, "" if text else document.message or blank


class Problems:
    """Bad documents: the first ends the work, or (`skip`) all are counted and listed."""

    def __init__(self, skip, state=None):
        self._skip = skip
        self.state = state or {"count": 0, "messages": []}

    def add(self, message):
        """Notes a problem, or raises it."""
        if not self._skip:
            raise ValueError(f"{message} (--skip-bad lists bad documents instead, and goes on.)")
        self.state["count"] += 1
        if len(self.state["messages"]) < _MAX_LISTED:
            self.state["messages"].append(message)

    def check_rest(self, num_documents):
        """Raises a ValueError if no document is left."""
        if not num_documents:
            raise ValueError(
                "No document is left to prepare; all of them are bad. Received: "
                f"skipped={self.state['count']}, the first: {self.state['messages'][0]}"
            )


class Documents:
    """The documents in a folder that `read_documents` filled, without duplicates."""

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
        """The documents of a block of a part, sorted `(digest, text)`."""
        # the byte that chooses the bucket is the first of the number that chooses the block, so a
        # block is a number of neighbouring buckets, or a part of one
        first = block * NUM_BUCKETS // num_blocks
        end = max((block + 1) * NUM_BUCKETS // num_blocks, first + 1)
        return sorted(
            (digest, text)
            for bucket in range(first, end)
            for digest, text in self.bucket(bucket)[0]
            if part_of(digest, held_out) == part and block_number(digest, num_blocks) == block
        )


def part_of(digest, held_out):
    """The part, of `PARTS`, that a document belongs to."""
    return "valid" if is_held_out(digest, held_out) else "train"


def is_sampled(digest, share):
    """Whether a document belongs to a sample of all documents."""
    return digest_fraction(digest, 16) < share


def block_number(digest, num_blocks):
    """The block, 0 to `num_blocks - 1`, of a document; halving them joins neighbours."""
    return int.from_bytes(digest[8:12], "big") >> (32 - (num_blocks.bit_length() - 1))


def choose_num_blocks(num_bytes, block_bytes):
    """The smallest power of two of blocks that hold at most `block_bytes` on average."""
    return 1 << (max(1, -(-num_bytes // block_bytes)) - 1).bit_length()


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
