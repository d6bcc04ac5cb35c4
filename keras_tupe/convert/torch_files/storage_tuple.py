"""The tuple by which the pickle in a torch file names a storage that lies outside of it."""

from keras_tupe.convert.torch_files.globals import Allowed
from keras_tupe.convert.torch_files.tensors import TorchFileError


def parse_storage_tuple(identity):
    """Returns kind, key, number of elements and view of a storage.

    Args:
        identity: `("storage", class, key, device, count)`, and in the older format a sixth element:
            `None`, or `(key, offset, count)` of a part of the storage. The device is ignored.

    Returns:
        `StorageKind`, text, int and `None` or a tuple of a text and two ints.

    Raises:
        TorchFileError: if it is anything else.
    """
    if (
        type(identity) is not tuple
        or len(identity) not in (5, 6)
        or type(identity[0]) is not str
        or identity[0] != "storage"
    ):
        raise TorchFileError("its pickle refers to something outside it that is not a storage")
    _, allowed, key, _, count = identity[:5]
    view = identity[5] if len(identity) == 6 else None
    if not isinstance(allowed, Allowed) or allowed.storage_kind is None:
        raise TorchFileError("a storage has no type")
    if type(key) is not str or not _is_count(count):
        raise TorchFileError("a storage has no key, or no number of elements")
    if view is not None and not (
        type(view) is tuple
        and len(view) == 3
        and type(view[0]) is str
        and _is_count(view[1])
        and _is_count(view[2])
        and view[1] + view[2] <= count
    ):
        raise TorchFileError(f"a part of the storage {key[:200]!r} lies outside of it")
    return allowed.storage_kind, key, count, view


def _is_count(value):
    return type(value) is int and 0 <= value < 2**62
