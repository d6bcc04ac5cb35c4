"""What compresses the bytes of a file, by its suffix."""

import bz2
import functools
import gzip
import lzma

import zstandard

COMPRESS = {
    ".gz": gzip.compress,
    ".xz": functools.partial(lzma.compress, preset=0),
    ".zst": zstandard.ZstdCompressor().compress,
    ".bz2": bz2.compress,
}
