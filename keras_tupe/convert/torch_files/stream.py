"""Bytes of a torch file, read in order, and never more than there are."""

from keras_tupe.convert.torch_files.tensors import TorchFileError

MAX_PICKLE_BYTES = 64 * 2**20  # weights lie outside the pickle; a large model's takes under 1 MiB
MAX_LINE_BYTES = 1024


class BoundedStream:
    """Reads from a file object after checking that the bytes are there.

    Args:
        file: binary file object, at its first byte.
        size: bytes in the file.
    """

    def __init__(self, file, size):
        self._file = file
        self._size = size
        self._position = 0
        self._end = size

    @property
    def left(self):
        """Bytes behind the position, up to the end of the file."""
        return self._size - self._position

    def begin_pickle(self):
        """From here on, `MAX_PICKLE_BYTES` may be read."""
        self._end = min(self._size, self._position + MAX_PICKLE_BYTES)

    def end_pickle(self):
        """From here on, the whole file may be read."""
        self._end = self._size

    def read(self, count):
        """Returns exactly `count` bytes.

        Raises:
            TorchFileError: if the file, or the most that a pickle may be, ends before that.
        """
        if count > self._end - self._position:
            if self._end < self._size:
                raise TorchFileError(f"its pickle has more than {MAX_PICKLE_BYTES} bytes")
            raise TorchFileError("it ends too early, as a file does that was cut off")
        data = self._file.read(count)
        if len(data) != count:  # somebody shortens it while we read
            raise TorchFileError("it ends too early, as a file does that was cut off")
        self._position += count
        return data

    def read_line(self):
        """Returns a short text up to a line's end, without that.

        Raises:
            TorchFileError: if there is no such line of at most `MAX_LINE_BYTES` UTF-8 bytes.
        """
        data = bytearray()
        while (byte := self.read(1)) != b"\n":
            data += byte
            if len(data) > MAX_LINE_BYTES:
                raise TorchFileError("its pickle has a name that does not end")
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError:
            raise TorchFileError("its pickle has a name that is not UTF-8") from None
