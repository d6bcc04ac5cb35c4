"""Arrays of NumPy files that anybody may have written: read, or refused with a reason."""

import math
import os
import zipfile

import numpy as np

_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def read_npz(path):
    """Returns the arrays in a file that `numpy.savez` wrote, a dictionary.

    NumPy's reader ends in errors of many kinds, gives bytes where an entry is no array, and takes
    the memory that a header asks for before it sees that the file is shorter.
    """
    try:
        with open(path, "rb") as file, zipfile.ZipFile(file) as archive:
            infos = archive.infolist()
            _check_entries(infos, os.fstat(file.fileno()).st_size)
            return {info.filename.removesuffix(".npy"): _entry(archive, info) for info in infos}
    except OSError:
        raise
    except Exception as error:  # zipfile and NumPy's header end in errors of any kind
        raise ValueError(f"{os.path.basename(path)} is damaged ({_reason(error)})") from None


def read_npy(path):
    """Returns the array in a file that `numpy.save` wrote."""
    try:
        with open(path, "rb") as file:
            _check_header(file, os.fstat(file.fileno()).st_size)
            file.seek(0)
            return np.lib.format.read_array(file, allow_pickle=False)
    except OSError:
        raise
    except Exception as error:  # as above
        raise ValueError(f"{os.path.basename(path)} is damaged ({_reason(error)})") from None


def _check_entries(infos, size):
    names = [info.filename for info in infos]
    if len(set(names)) < len(names):
        raise ValueError("an array is there twice")
    if any(
        info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size
        for info in infos
    ):
        raise ValueError("it is compressed")
    if sum(info.file_size for info in infos) > size:
        raise ValueError(f"its entries claim more than the {size} bytes of the file")
    others = [name for name in names if not name.endswith(".npy")]
    if others:
        raise ValueError(f"its entry {others[0][:100]!r} is no array")


def _entry(archive, info):
    with archive.open(info) as stream:
        _check_header(stream, info.file_size)
    with archive.open(info) as stream:
        return np.lib.format.read_array(stream, allow_pickle=False)


def _check_header(stream, size):
    version = np.lib.format.read_magic(stream)
    if version not in _HEADERS:
        raise ValueError(f"an array has format {version}")
    shape, _, kind = _HEADERS[version](stream)
    held = size - stream.tell()
    if kind.hasobject or any(axis < 0 for axis in shape):
        raise ValueError(f"an array has shape {shape} and type {kind}")
    if math.prod(shape) * kind.itemsize != held:
        raise ValueError(f"an array of shape {shape} and type {kind} has {held} bytes")


def _reason(error):
    return str(error)[:200] or type(error).__name__
