"""Reads a torch checkpoint into NumPy arrays: without torch, and without running what is in it."""

import os
import pathlib

from keras_tupe.convert.torch_files.legacy import read_legacy
from keras_tupe.convert.torch_files.tensors import TorchFileError
from keras_tupe.convert.torch_files.zip import read_zip

ZIP_START = b"PK\x03\x04"
PICKLE_START = b"\x80"  # of protocol 2 or newer


def read_torch_file(path):
    """Returns what `torch.save` wrote to a file, with NumPy arrays instead of tensors.

    Both formats are read: the zip archive (torch 1.6 and newer) and the older one. Tensors are
    read-only views, and tied tensors share their memory. bfloat16 becomes float32, parameters
    become plain arrays, ordered dictionaries plain ones, and `argparse.Namespace` (and a few more
    classes of fairseq) an `InertObject`, whose `attributes` is a dictionary.

    Args:
        path: path of the file, usually `.pt` or `.bin`.

    Returns:
        Nested dictionaries, lists, tuples, numbers, texts, `InertObject` and NumPy arrays.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it is not a torch checkpoint, damaged, cut off, made on a big-endian
            machine, of sizes that contradict each other, or holds anything but data: the first
            such name is reported, and nothing in the file is ever run.
    """
    path = pathlib.Path(path)
    if not path.is_file():
        raise FileNotFoundError(
            "There is no such checkpoint; expected the path of a file. "
            f"Received: path={str(path)!r}"
        )
    try:
        with path.open("rb") as file:
            loaded = _read(file, os.fstat(file.fileno()).st_size)
    except TorchFileError as problem:
        raise ValueError(
            f"This torch checkpoint was not read: {problem}. Expected a whole file that torch.save "
            f"wrote, with weights and plain settings only. Received: path={str(path)!r}"
        ) from None
    return loaded


def _read(file, size):
    start = file.read(4)
    file.seek(0)
    if start == ZIP_START:
        return read_zip(file, size)
    if start.startswith(PICKLE_START):
        return read_legacy(file, size)
    raise TorchFileError("it begins neither as a zip archive nor as an older torch file")
