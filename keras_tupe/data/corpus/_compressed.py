"""Files read line by line, whatever they are compressed with."""

import bz2
import contextlib
import gzip
import io
import lzma
import zlib

COMPRESSIONS = (".gz", ".xz", ".zst", ".bz2")

_BUFFER = 2**20
_ZSTANDARD_BYTES = 2**10  # read at a time: what comes out may be thousands of times as much
_ZSTANDARD_WINDOW = 2**31  # bytes; files made with --long=31 need it


@contextlib.contextmanager
def open_binary(path):
    """Opens a file for reading bytes; the suffix says how it is compressed.

    Args:
        path: `pathlib.Path`.

    Yields:
        A buffered binary reader and the raw file below it, whose `tell()` says how much of the
        file on disk has been read.
    """
    with path.open("rb") as raw, _decompressed(raw, path.suffix.lower()) as stream:
        yield io.BufferedReader(stream, _BUFFER), raw


def is_broken_file(error):
    """Whether an exception of the reader means that the compressed file is damaged or cut off."""
    kinds = (EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile)
    return isinstance(error, kinds) or (
        type(error).__name__ == "ZstdError"
        or (isinstance(error, OSError) and str(error) == "Invalid data stream")  # bz2
    )


def _decompressed(raw, suffix):
    if suffix == ".gz":
        return _Available(gzip.GzipFile(fileobj=raw))
    if suffix == ".xz":
        return _Available(lzma.LZMAFile(raw))
    if suffix == ".bz2":
        return _Available(bz2.BZ2File(raw))
    if suffix == ".zst":
        return _Zstandard(raw)
    return contextlib.nullcontext(raw)


class _Available(io.RawIOBase):
    """Hands on what can be read before damage; the `readinto` of these files would drop it."""

    def __init__(self, stream):
        self._stream = stream

    def readable(self):
        return True

    def readinto(self, buffer):
        content = self._stream.read1(len(buffer))
        buffer[: len(content)] = content
        return len(content)


class _Zstandard(io.RawIOBase):
    """All frames of a .zst file; a file that ends inside a frame is an error, not an end."""

    def __init__(self, raw):
        import zstandard

        self._raw = raw
        self._make = zstandard.ZstdDecompressor(max_window_size=_ZSTANDARD_WINDOW).decompressobj
        self._frame = None
        self._input = self._output = b""

    def readable(self):
        return True

    def readinto(self, buffer):
        while not self._output:
            self._input = self._input or self._raw.read(_ZSTANDARD_BYTES)
            if not self._input:
                if self._frame is not None:
                    raise EOFError("the file ends inside a frame")
                return 0
            self._frame = self._frame or self._make()
            self._output = self._frame.decompress(self._input)
            self._input = b""
            if self._frame.eof:
                self._input, self._frame = self._frame.unused_data, None
        size = min(len(buffer), len(self._output))
        buffer[:size] = self._output[:size]
        self._output = self._output[size:]
        return size
