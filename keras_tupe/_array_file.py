"""An array in a NumPy file that anybody may have written: read, or refused with a reason."""

import os

import numpy as np


def read_npy(path):
    """Returns the array in a file that `numpy.save` wrote.

    It is mapped first, since NumPy's reader takes the memory that a header asks for before it sees
    that the file is shorter.
    """
    try:
        array = np.lib.format.open_memmap(path, mode="r")
        if array.offset + array.nbytes != os.path.getsize(path):
            raise ValueError(f"an array of shape {array.shape} and type {array.dtype} and more")
        return np.array(array)
    except OSError:
        raise
    except Exception as error:  # NumPy's header ends in errors of any kind
        reason = str(error)[:200] or type(error).__name__
        raise ValueError(f"{os.path.basename(path)} is damaged ({reason})") from None
