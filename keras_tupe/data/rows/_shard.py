"""One ArrayRecord file of rows, read at random positions, in any thread."""

import os

import numpy as np

# The reader works in the thread that asks: batches are small, and there are several such threads.
_OPTIONS = "readahead_buffer_size:0,max_parallelism:0"
_BUFFER_BYTES = 4096

_reading_process = None  # the first that opened a shard, if this one or one it was forked from did


class Shard:
    """Rows of one file.

    Args:
        path: `pathlib.Path` of the file.
        num_rows: number of rows in it.
        length: tokens per row.
        vocabulary_size: the ids are from 0 to `vocabulary_size - 1`.
    """

    def __init__(self, path, num_rows, length, vocabulary_size):
        self.path = path
        self.num_rows = num_rows
        self.length = length
        self.vocabulary_size = vocabulary_size
        self._prefix = _record_prefix(length)
        self._reader = None  # made at the first read

    def __getstate__(self):
        return {**vars(self), "_reader": None}

    def read(self, positions):
        """The rows at some positions, int32 `(n, length)`.

        Raises:
            FileNotFoundError: if the file is gone.
            RuntimeError: if this process was forked from one that had read a shard.
            ValueError: if the file is not the one that was written.
        """
        _check_process()
        try:
            if self._reader is None:  # two threads may both see this, and either reader serves
                self._reader = self._open()
            records = self._reader.read(positions.tolist())
        except (RuntimeError, ValueError, IndexError) as error:  # whatever the reader reports
            raise self._error(str(error).partition(";")[0]) from error
        size = len(self._prefix) + 4 * self.length
        if {len(record) for record in records} != {size}:
            raise self._error(f"its records are not rows of {self.length} tokens")
        content = np.frombuffer(b"".join(records), "uint8").reshape(len(records), size)
        if (content[:, : len(self._prefix)] != self._prefix).any():
            raise self._error("its records have another form")
        token_ids = content[:, len(self._prefix) :].copy().view("<i4")  # (n, length)
        if token_ids.min() < 0 or token_ids.max() >= self.vocabulary_size:
            raise self._error(f"it has ids that are not from 0 to {self.vocabulary_size - 1}")
        return token_ids.astype("int32", copy=False)

    def _open(self):
        from array_record.python import array_record_module

        if not self.path.is_file():
            raise FileNotFoundError(
                "A file of the prepared rows is missing. Put it back, or prepare the rows again. "
                f"Received: {str(self.path)!r}"
            )
        reader = array_record_module.ArrayRecordReader(
            str(self.path), options=_OPTIONS, file_reader_buffer_size=_BUFFER_BYTES
        )
        found = reader.num_records()  # raises if the end of the file is damaged
        if found != self.num_rows:
            raise ValueError(f"it has {found} rows, and {self.num_rows} were written")
        return reader

    def _error(self, reason):
        return ValueError(
            f"A file of prepared rows is not as it was written: {reason}. To find all such files: "
            f"python -m training.prepare --verify {self.path.parent}. Then prepare the rows again. "
            f"Received: {str(self.path)!r}"
        )


def _check_process():
    """ArrayRecord cleans up in a thread that a fork does not take along, and then waits for it."""
    global _reading_process
    _reading_process = _reading_process or os.getpid()
    if _reading_process != os.getpid():
        raise RuntimeError(
            "Prepared rows cannot be read in a process that was forked after rows were read: "
            "ArrayRecord may wait forever. Fork before the first read, or start processes with "
            "multiprocessing.get_context('spawn') or 'forkserver'. "
            f"Received: a read in process {os.getpid()}, forked from {_reading_process}"
        )


def _record_prefix(length):
    """What stands before the ids in every record, a `tf.train.Example` as TFDS writes it: uint8.

    Protocol buffers nest: `features` 1 { `feature` 1 { `key` 1 "token_ids", `value` 2 {
    `bytes_list` 1 { `value` 1 the ids } } } }, each with its number, kind 2 and size in bytes.
    """
    key = b"\x0a\x09token_ids"
    prefix = b""
    for number, before in ((1, b""), (1, b""), (2, key), (1, b""), (1, b"")):  # from the inside
        prefix = before + bytes([number << 3 | 2]) + _varint(len(prefix) + 4 * length) + prefix
    return np.frombuffer(prefix, "uint8")


def _varint(number):
    """A protocol buffer's integer: seven bits a byte, the lowest first."""
    low = number & 127
    return bytes([low]) if number < 128 else bytes([low | 128]) + _varint(number >> 7)
