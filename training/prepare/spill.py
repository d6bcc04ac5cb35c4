"""Cleaned documents on disk, in buckets by their hash; a killed program goes on where it was."""

import contextlib
import hashlib
import os
import resource

import numpy as np

from keras_tupe.data import document_digest, read_sealed_json, write_sealed_json

NUM_BUCKETS = 256

_INDEX = np.dtype([("digest", ">u8", 4), ("offset", "<u8"), ("size", "<u8"), ("words", "<u8")])
_JOURNAL = "journal.json"
_BYTES_PER_COMMIT = 2**26


class Spill:
    """Appends documents to buckets; `commit` makes what was added so far survive a kill.

    A bucket is chosen by the byte of the hash from which blocks are numbered as well, so a block
    is a number of neighbouring buckets, or a part of one.

    Args:
        folder: made if it is not there. What was added after the last commit is cut off.

    Raises:
        ValueError: if the journal is damaged, or files are shorter than at the last commit.
            `documents` raises it, too, for a document that is not what was added.
    """

    def __init__(self, folder):
        folder.mkdir(exist_ok=True)
        self._folder = folder
        journal = folder / _JOURNAL
        record = {}
        if journal.exists():
            with refused_if_damaged(journal):
                record = read_sealed_json(journal)
        self.state = record.get("state", {})
        self.is_complete = record.get("complete", False)
        self._files = []
        self._uncommitted = 0
        _allow_open_files(2 * NUM_BUCKETS + 256)
        sizes = record.get("sizes", [[0, 0]] * NUM_BUCKETS)
        for bucket, both in enumerate(sizes):
            for path, size in zip(self._paths(bucket), both, strict=True):
                if size and (not path.exists() or path.stat().st_size < size):
                    raise _damaged(path)
        if self.is_complete:
            return
        for bucket, both in enumerate(sizes):
            files = [
                _open_at(path, size) for path, size in zip(self._paths(bucket), both, strict=True)
            ]
            self._files.append(files)

    def add(self, document):
        """Adds a document, a string; returns how many words it has."""
        digest = document_digest(document)
        content = document.encode("utf-8")
        num_words = len(document.split())
        text, index = self._files[digest[8]]
        entry = np.array(
            (np.frombuffer(digest, ">u8"), text.tell(), len(content), num_words), _INDEX
        )
        text.write(content)
        index.write(entry.tobytes())
        self._uncommitted += len(content)
        return num_words

    def commit(self, state, complete=False):
        """Notes on disk that everything added so far belongs to `state` (a JSON dictionary).

        Commits cost something: unless `complete`, this one waits until there are 64 MB to note.
        """
        if not complete and self._uncommitted < _BYTES_PER_COMMIT:
            return
        sizes = []
        for files in self._files:
            for file in files:
                file.flush()
            sizes.append([file.tell() for file in files])
        record = {"state": state, "sizes": sizes, "complete": complete}
        write_sealed_json(self._folder / _JOURNAL, record)
        self._uncommitted = 0
        self.state, self.is_complete = state, complete
        if complete:
            self.close()

    def close(self):
        """Closes the files; what was not committed is lost."""
        for files in self._files:
            for file in files:
                with contextlib.suppress(OSError):  # a full disk, told before
                    file.close()
        self._files = []

    def index(self, first_bucket, end_bucket):
        """Entries of neighbouring buckets without duplicates, sorted by hash.

        Returns:
            Structured array with the fields `digest`, `offset`, `size`, `words`, and `bucket`;
            and the number of duplicates that were dropped.
        """
        parts = []
        for bucket in range(first_bucket, end_bucket):
            entries = np.fromfile(self._paths(bucket)[1], _INDEX)
            with_bucket = np.empty(len(entries), [*_INDEX.descr, ("bucket", "<u2")])
            for name in _INDEX.names:
                with_bucket[name] = entries[name]
            with_bucket["bucket"] = bucket
            parts.append(with_bucket)
        entries = np.concatenate(parts)
        keys = entries["digest"]
        entries = entries[np.lexsort(keys.T[::-1])]
        keys = entries["digest"]
        is_new = np.ones(len(entries), bool)
        is_new[1:] = (keys[1:] != keys[:-1]).any(axis=1)
        return entries[is_new], int(len(entries) - is_new.sum())

    def documents(self, entries):
        """Yields the texts of entries of `index`, in their order."""
        files = {}
        try:
            for entry, digest in zip(entries, digests(entries), strict=True):
                bucket = int(entry["bucket"])
                path = self._paths(bucket)[0]
                if bucket not in files:
                    if not path.is_file():
                        raise _damaged(path)
                    files[bucket] = os.open(path, os.O_RDONLY)
                first, size = int(entry["offset"]), int(entry["size"])
                if first + size > os.fstat(files[bucket]).st_size:
                    raise _damaged(path)
                content = os.pread(files[bucket], size, first)
                if hashlib.sha256(content).digest() != digest:
                    raise _damaged(path)
                yield content.decode("utf-8")
        finally:
            for handle in files.values():
                os.close(handle)

    def _paths(self, bucket):
        return [self._folder / f"{bucket:02x}.{kind}" for kind in ("text", "index")]


def digests(entries):
    """The 32-byte hashes of entries, a list of bytes."""
    content = entries["digest"].astype(">u8").tobytes()  # NumPy's functions may swap bytes
    return [content[start : start + 32] for start in range(0, len(content), 32)]


@contextlib.contextmanager
def refused_if_damaged(path):
    """Lets a file of the unfinished work that is not what was written be told in a sentence."""
    try:
        yield
    except (OSError, ValueError):
        raise _damaged(path) from None


def _damaged(path):
    return ValueError(
        "The unfinished work on disk was damaged, perhaps by a loss of power, and is removed. "
        f"Run the same command again. Received: {str(path)!r}"
    )


def _allow_open_files(number):
    """Raises this process's own limit of open files, which is 256 on some systems."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < number:
        allowed = number if hard == resource.RLIM_INFINITY else min(number, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))


def _open_at(path, size):
    """Opens a file for appending after its first `size` bytes; the rest is cut off."""
    file = path.open("r+b" if path.exists() else "w+b")
    file.truncate(size)
    file.seek(size)
    return file
