"""The zip format of torch 1.6 and newer: a pickle, and one entry for each storage."""

import io
import struct
import zipfile

from keras_tupe.convert.torch_files.pickle import TorchPickle
from keras_tupe.convert.torch_files.storage_tuple import parse_storage_tuple
from keras_tupe.convert.torch_files.stream import BoundedStream
from keras_tupe.convert.torch_files.tensors import Storage, TorchFileError

# What Python's zipfile raises for damaged archives, besides its own error.
ZIP_ERRORS = (
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
    EOFError,
    NotImplementedError,
    OSError,
    OverflowError,
    RuntimeError,
    ValueError,
    struct.error,
)


def read_zip(file, size):
    """Returns the object in an archive, with arrays for its tensors.

    Args:
        file: binary file object.
        size: its bytes.

    Raises:
        TorchFileError: if the archive is not what `torch.save` writes.
    """
    try:
        archive = zipfile.ZipFile(file)
    except ZIP_ERRORS as error:
        raise TorchFileError(f"its zip archive is damaged or cut off ({error})") from None
    with archive:
        return _Entries(archive, size).load()


class _Entries:
    """Storages of one archive, each read once."""

    def __init__(self, archive, size):
        self._archive = archive
        self._infos = {info.filename: info for info in archive.infolist()}
        # Torch does not compress. So an archive with more content than bytes is a bomb, or damaged.
        if any(
            info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size
            for info in self._infos.values()
        ):
            raise TorchFileError("its zip archive is compressed, which torch.save never does")
        claimed = sum(info.file_size for info in self._infos.values())
        if claimed > size:
            raise TorchFileError(
                f"its zip archive claims {claimed} bytes of content, the file has {size}"
            )
        pickles = [
            name for name in self._infos if name.endswith("/data.pkl") and name.count("/") == 1
        ]
        if len(pickles) != 1:
            raise TorchFileError("its zip archive does not hold exactly one NAME/data.pkl")
        self._root = pickles[0].removesuffix("data.pkl")
        self._storages = {}

    def load(self):
        order = self._root + "byteorder"  # written by torch 2.1 and newer
        if order in self._infos and self._read(order) != b"little":
            raise TorchFileError("it was not written on a little-endian machine")
        pickle = self._read(self._root + "data.pkl")
        stream = BoundedStream(io.BytesIO(pickle), len(pickle))
        stream.begin_pickle()
        return TorchPickle(stream, self._storage).load()

    def _read(self, name):
        if name not in self._infos:
            raise TorchFileError(f"its zip archive has no entry {name[:200]!r}")
        try:
            return self._archive.read(name)  # which checks the entry's checksum
        except ZIP_ERRORS as error:
            raise TorchFileError(f"its entry {name[:200]!r} is damaged ({error})") from None

    def _storage(self, identity):
        kind, key, count, _ = parse_storage_tuple(identity)
        if key not in self._storages:
            name = f"{self._root}data/{key}"
            raw = self._read(name)
            if len(raw) != count * kind.item_bytes:
                raise TorchFileError(
                    f"its storage {key[:200]!r} has {len(raw)} bytes, but its tensors claim "
                    f"{count} elements of {kind.item_bytes} bytes"
                )
            self._storages[key] = Storage(kind, kind.decode(raw))
        storage = self._storages[key]
        if storage.kind != kind or storage.items.size != count:
            raise TorchFileError(f"its storage {key[:200]!r} is described in two ways")
        return storage
