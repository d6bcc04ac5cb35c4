"""Room for a preset."""

import math
import os
import resource
import shutil

_BYTES_AROUND = 4096  # of a weight in HDF5: names, groups, alignment; at most


def check_preset_space(model, folder):
    """Refuses a disk or a file-size limit that a preset would not fit into.

    HDF5 ends the process when it cannot write, so that nothing could be cleaned up then.

    Args:
        model: what is going to be saved.
        folder: where; it exists.

    Raises:
        ValueError: if there is too little room.
    """
    needed = sum(
        math.prod(weight.shape) * (8 if weight.dtype == "float64" else 4) + _BYTES_AROUND
        for weight in model.weights
    )
    free, what = shutil.disk_usage(folder).free, "on the disk"
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    if limit != resource.RLIM_INFINITY and limit < free:
        free, what = limit, "allowed for a file (ulimit -f)"
    if needed > free:
        raise ValueError(
            f"The preset needs about {needed:,} bytes, and {free:,} are {what}. Choose another "
            f"place or make room. Received: {os.fspath(folder)!r}"
        )
