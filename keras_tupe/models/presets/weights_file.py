"""Refuses a file of weights that is damaged or hostile, before Keras reads it.

An HDF5 file may point to other files, claim arrays of any size, and break its reader.
"""

import contextlib
import math
import pathlib
import zipfile

import h5py
import ml_dtypes
import numpy as np

from keras_tupe._finite import check_finite
from keras_tupe._json_file import read_json_object

# A claimed size counts once it is large and far above what is stored: Keras does not compress.
_CLAIM_BYTES = 2**26
_CLAIM_FACTOR = 100
_CHUNK_BYTES = 2**24
_DEEPEST = 100  # groups
_MEMBER = "model.weights.h5"  # of a .keras file


def check_weights(path):
    """Refuses a weights file that should not be read; reads all of it.

    Args:
        path: `.h5` file; the `.json` of a sharded one, beside its shards; or `.keras` file.

    Raises:
        ValueError: if it is damaged, points elsewhere, claims more than it holds, or has NaN or
            infinity among its weights.
    """
    for file in _files(path):
        with _opened(file) as opened:
            check_values(opened, file)


def weight_shapes(path):
    """Returns the shapes of the arrays in a weights file, without reading them.

    Args:
        path: as for `check_weights`.

    Returns:
        Dictionary from name to shape.

    Raises:
        ValueError: as `check_weights`, but for the values.
    """
    shapes = {}
    for file in _files(path):
        with _opened(file) as opened:
            shapes |= {name: item.shape for name, item in _datasets(opened, file)}
    return shapes


def check_values(opened, path):
    """Refuses an open HDF5 file that points elsewhere, claims too much, or holds NaN.

    Args:
        opened: `h5py.File`.
        path: where it is, for the message.

    Raises:
        ValueError: if it is refused. What h5py raises for damaged files is passed on.
    """
    for name, item in _datasets(opened, path):
        row_bytes = max(1, item.dtype.itemsize * math.prod(item.shape[1:]))
        step = max(1, _CHUNK_BYTES // row_bytes)
        for start in range(0, item.shape[0] if item.shape else 1, step):
            array = np.asarray(item[start : start + step] if item.shape else item[()])
            if item.attrs.get("dtype") == "bfloat16":
                array = array.view(ml_dtypes.bfloat16)
            check_finite(f"{name} in {str(path)!r}", array)


def _files(path):
    """Returns a weights file, or the shards that its JSON file lists."""
    path = pathlib.Path(path)
    if path.suffix != ".json":
        return [path]
    try:
        found = read_json_object(path).get("weight_map")
    except ValueError as error:
        raise ValueError(
            f"The list of a model's weights files must be JSON: {error}. Received: {str(path)!r}"
        ) from None
    names = []
    for value in found.values() if isinstance(found, dict) else [found]:
        names += value if isinstance(value, list) else [value]
    for name in names:
        if not isinstance(name, str) or name != pathlib.Path(name).name or name in ("", ".", ".."):
            raise ValueError(
                "The list of a model's weights files must name files beside it. "
                f"Received: {repr(name)[:100]} in {str(path)!r}"
            )
    return [path.with_name(name) for name in sorted(set(names))]


@contextlib.contextmanager
def _opened(path):
    """Opens the HDF5 file; whatever h5py says of a damaged one becomes a sentence."""
    try:
        with contextlib.ExitStack() as stack:
            source = path
            if path.suffix == ".keras":
                archive = stack.enter_context(zipfile.ZipFile(path))
                _check_member(archive.getinfo(_MEMBER), path)
                source = stack.enter_context(archive.open(_MEMBER))
            yield stack.enter_context(h5py.File(source, "r"))
    except FileNotFoundError:
        raise
    except _RefusedError as error:
        raise ValueError(str(error)) from None
    except Exception as error:  # h5py has no list of what it raises, and none is ours
        if isinstance(error, ValueError) and "Received:" in str(error):
            raise
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise ValueError(
            f"The weights file is damaged: {reason}. Received: {str(path)!r}"
        ) from None


class _RefusedError(Exception):
    """A weights file that is not damaged, and not read all the same; it becomes a `ValueError`."""


def _check_member(info, path):
    if info.file_size > max(_CLAIM_BYTES, _CLAIM_FACTOR * info.compress_size):
        raise _RefusedError(
            f"The weights in the file claim {info.file_size} bytes and take {info.compress_size}, "
            f"as only an attack does. Received: {str(path)!r}"
        )


def _datasets(group, path, prefix="", above=()):
    """Yields the names and arrays below a group, following no link and entering no group twice."""
    above = (*above, h5py.h5o.get_info(group.id).addr)
    for name in group:
        where = f"{prefix}{name}"
        link = group.get(name, getclass=True, getlink=True)
        if link is not h5py.HardLink:
            raise _RefusedError(
                "A weights file must hold its weights itself, and this one has a link to "
                f"elsewhere. Received: {where} in {str(path)!r}, a {link.__name__}"
            )
        item = group[name]
        if isinstance(item, h5py.Group):
            if h5py.h5o.get_info(item.id).addr in above or len(above) > _DEEPEST:
                raise _RefusedError(
                    "A weights file must be a tree of groups. "
                    f"Received: {where} in {str(path)!r}, a group inside itself or too deep"
                )
            yield from _datasets(item, path, f"{where}/", above)
        elif isinstance(item, h5py.Dataset):
            _check_dataset(item, where, path)
            yield where, item
        else:
            raise _RefusedError(
                "A weights file must hold groups and arrays only. "
                f"Received: {where} in {str(path)!r}, a {type(item).__name__}"
            )


def _check_dataset(item, where, path):
    if item.external or item.is_virtual:
        raise _RefusedError(
            "A weights file must hold its weights itself, and an array of this one lies in other "
            f"files. Received: {where} in {str(path)!r}"
        )
    if item.shape is None or item.dtype.kind not in "fiubV" or item.dtype.hasobject:
        raise _RefusedError(
            "A weights file must hold arrays of numbers. "
            f"Received: {where} in {str(path)!r}, shape {item.shape} of {item.dtype}"
        )
    claimed = math.prod(item.shape) * item.dtype.itemsize
    stored = item.id.get_storage_size()
    if claimed > max(_CLAIM_BYTES, _CLAIM_FACTOR * stored):
        raise _RefusedError(
            "The weights file is a trap: it claims an array far larger than what it holds. "
            f"Received: {where} in {str(path)!r}, shape {item.shape}, {claimed} bytes of which "
            f"{stored} are stored"
        )
