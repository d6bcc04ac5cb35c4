"""The format of torch before 1.6: pickles one after another, then the storages' bytes."""

from keras_tupe.convert.torch_files.pickle import TorchPickle
from keras_tupe.convert.torch_files.storage_tuple import parse_storage_tuple
from keras_tupe.convert.torch_files.stream import BoundedStream
from keras_tupe.convert.torch_files.tensors import Storage, TorchFileError

MAGIC_NUMBER = 0x1950A86A20F9469CFC6C
PROTOCOL_VERSION = 1001
COUNT_BYTES = 8  # of the number of elements before each storage


def read_legacy(file, size):
    """Returns the object in a file, with arrays for its tensors.

    The file holds a magic number, a protocol version, a description of the machine, the object and
    the keys of its storages, each as a pickle; then for each key the number of elements and these.

    Args:
        file: binary file object.
        size: its bytes.

    Raises:
        TorchFileError: if the file is not what `torch.save` wrote.
    """
    stream = BoundedStream(file, size)
    storages = _Storages(stream)
    if _load_plain(stream) != MAGIC_NUMBER or _load_plain(stream) != PROTOCOL_VERSION:
        raise TorchFileError("it does not begin as torch.save begins a file")
    machine = _load_plain(stream)
    if type(machine) is not dict or machine.get("little_endian") is not True:
        raise TorchFileError("it was not written on a little-endian machine")
    loaded = _load(stream, storages.promise)
    storages.fill(_load_plain(stream))
    return loaded


def _load(stream, load_storage):
    stream.begin_pickle()
    loaded = TorchPickle(stream, load_storage).load()
    stream.end_pickle()
    return loaded


def _load_plain(stream):
    def refuse(_):
        raise TorchFileError("it refers to a storage outside of its object")

    return _load(stream, refuse)


class _Storages:
    """Arrays made when a tensor first asks for them, and filled when their bytes come."""

    def __init__(self, stream):
        self._stream = stream
        self._promised = 0  # bytes
        self._storages = {}

    def promise(self, identity):
        kind, key, count, view = parse_storage_tuple(identity)
        if key not in self._storages:
            self._promised += count * kind.item_bytes
            if self._promised > self._stream.left:
                raise TorchFileError(
                    f"its storages claim at least {self._promised} bytes, but {self._stream.left} "
                    "are left in the file"
                )
            self._storages[key] = Storage(kind, kind.empty(count))
        storage = self._storages[key]
        if storage.kind != kind or storage.items.size != count:
            raise TorchFileError(f"its storage {key[:200]!r} is described in two ways")
        if view is None:
            return storage
        _, offset, length = view
        return Storage(kind, storage.items[offset : offset + length])

    def fill(self, keys):
        if type(keys) is not list or any(type(key) is not str for key in keys):
            raise TorchFileError("it has no list of its storages")
        if len(set(keys)) != len(keys) or set(keys) != set(self._storages):
            raise TorchFileError("its list of storages is not that of its tensors")
        for key in keys:
            storage = self._storages[key]
            count = int.from_bytes(self._stream.read(COUNT_BYTES), "little", signed=True)
            if count != storage.items.size:
                raise TorchFileError(
                    f"its storage {key[:200]!r} has {count} elements, but its tensors claim "
                    f"{storage.items.size}"
                )
            raw = self._stream.read(count * storage.kind.item_bytes)
            storage.items[:] = storage.kind.decode(raw)
