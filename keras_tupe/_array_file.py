"""An array in a NumPy file that anybody may have written: read, or refused with a reason."""

import math
import os

import numpy as np

_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def read_npy(path):
    """Returns the array in a file that `numpy.save` wrote.

    NumPy's reader takes the memory that a header asks for before it sees that the file is shorter.
    """
    try:
        with open(path, "rb") as file:
            _check_header(file, os.fstat(file.fileno()).st_size)
            file.seek(0)
            return np.lib.format.read_array(file, allow_pickle=False)
    except OSError:
        raise
    except Exception as error:  # NumPy's header ends in errors of any kind
        raise ValueError(f"{os.path.basename(path)} is damaged ({_reason(error)})") from None


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
