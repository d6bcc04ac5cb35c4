"""The folder of a preset: a hash of what it computes, and room to write it."""

import hashlib
import math
import os
import pathlib
import resource
import shutil

from keras_tupe.data import file_hash

_SETTINGS = ("config.json", "preprocessor.json", "tokenizer.json")


def preset_digest(folder, position_file=None):
    """Returns a hash of all that makes the answers of a preset, hexadecimal.

    Args:
        folder: the preset: settings, weights and vocabulary count, by content.
        position_file: the Python file that defines its positional method, or `None`.
    """
    folder = pathlib.Path(folder)
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        inside = path.relative_to(folder)
        if path.suffix == ".h5" or inside.parts[0] == "assets" or str(inside) in _SETTINGS:
            digest.update(f"{inside.as_posix()} {file_hash(path)}\n".encode())
    if position_file is not None:
        digest.update(file_hash(position_file).encode())
    return digest.hexdigest()


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
            f"folder or make room. Received: {os.fspath(folder)!r}"
        )
