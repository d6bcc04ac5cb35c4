"""The folder of a preset: its run, a hash of what it computes, its vocabulary, its size."""

import math
import os
import pathlib
import re
import resource
import shutil

from keras_tupe.data import file_hash

_ASSETS = pathlib.Path("assets", "tokenizer")
_SETTINGS = ("config.json", "preprocessor.json", "tokenizer.json")
_LAST, _FOLDER = "preset", "presets"  # of a run of `training.pretrain`
_BYTES_AROUND = 4096  # of a weight in HDF5: names, groups, alignment; at most


def preset_at(run, step=None):
    """Returns the folder of a run's preset after a step, a `pathlib.Path`; `None` for the last."""
    run = pathlib.Path(run)
    return run / _LAST if step is None else run / _FOLDER / f"step-{step}"


def run_of_preset(folder):
    """Returns the folder of the run that a preset may be of, and its step; `None` for neither.

    The step of the last one is not in its name, and `None`.
    """
    folder = pathlib.Path(folder)
    if folder.name == _LAST:
        return folder.parent, None
    found = re.fullmatch(r"step-(\d+)", folder.name)
    if found is None or folder.parent.name != _FOLDER:
        return None, None
    return folder.parent.parent, int(found[1])


def preset_digest(folder, position_file=None):
    """Returns a hash of all that makes the answers of a preset, hexadecimal.

    Settings, weights and vocabulary count by their content, and the file of a method of one's own.
    """
    found = file_hash(
        folder,
        lambda inside: (
            inside.suffix == ".h5" or inside.parts[0] == "assets" or str(inside) in _SETTINGS
        ),
    )
    return found if position_file is None else f"{found} {file_hash(position_file)}"


def check_preset_space(model, folder):
    """Refuses a disk or a file-size limit that a preset would not fit into.

    HDF5 ends the process when it cannot write, so that nothing could be cleaned up then.
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


def check_same_vocabulary(preset, size, vocabulary):
    """Refuses rows of another vocabulary than that of a preset, whose model has `size` pieces."""
    files = sorted((pathlib.Path(preset) / _ASSETS).glob("*"))
    ours = vocabulary.path.read_bytes()
    if size != vocabulary.size or not any(_same(file, ours) for file in files):
        raise ValueError(
            "The rows must have the vocabulary of the preset. Prepare them with "
            f"`--vocabulary` and the preset's file in {_ASSETS}. Received: a preset of {size} "
            f"pieces, rows of {vocabulary.size} other pieces; preset={preset!r}"
        )


def _same(file, content):
    return file.read_bytes().rstrip(b"\n") == content.rstrip(b"\n")
