"""Checkpoints of PyTorch, read into NumPy without PyTorch and without running what is in them.

Python's own unpickler, the one written in Python, cut down: it knows the instructions that
`torch.save` writes, and the few names that a file of weights needs; nothing is imported. What a
file can cost is bounded: no read beyond its end, a pickle of at most `MAX_PICKLE_BYTES`, no view
beyond a storage. Not the unpickler in C: a file can make its memory ask for gigabytes, and a tuple
in a tuple in a tuple as a key ends the process.
"""

import io
import math
import os
import pathlib
import pickle
import struct
import typing
import zipfile

import numpy as np

MAX_PICKLE_BYTES = 16 * 2**20  # that of the largest models has under 1 MiB
_MAGIC = (0x1950A86A20F9469CFC6C, 1001)
_TYPES = {  # little-endian; bfloat16 is the upper half of a float32
    "FloatStorage": "<f4",
    "DoubleStorage": "<f8",
    "HalfStorage": "<f2",
    "BFloat16Storage": "<u2",
    "LongStorage": "<i8",
    "IntStorage": "<i4",
    "ShortStorage": "<i2",
    "CharStorage": "i1",
    "ByteStorage": "u1",
    "BoolStorage": "u1",
}
_INERT = {  # records of settings and means in fairseq's checkpoints; never made real
    *("argparse.Namespace", "types.SimpleNamespace", "numpy.dtype", "_codecs.encode"),
    *("numpy.core.multiarray.scalar", "numpy._core.multiarray.scalar"),
    *(
        f"fairseq.{module}.{name}Meter"
        for module in ("meters", "logging.meters")
        for name in ("Average", "Time", "Stopwatch")
    ),
}
# The instructions that torch.save writes, in every protocol.
_OPCODES = b"\x80\x95(01N\x88\x89JKM\x8aGX\x8c\x8dTUBC\x8e]ae}su)t\x85\x86\x87qr\x94hjc\x93R\x81bQ."


class InertObject:
    """An object of a class that is not imported.

    Attributes:
        class_name: module and class, such as `"argparse.Namespace"`.
        attributes: dictionary of the object's attributes, where the file gives one.
    """

    class_name = None

    def __init__(self, *_):
        self.attributes = {}

    def __new__(cls, *_):
        made = super().__new__(cls)
        made.attributes = {}
        return made


def read_torch_file(path):
    """Returns what `torch.save` wrote to a file, with read-only NumPy arrays for its tensors.

    Both formats are read: the zip archive (torch 1.6 and newer) and the older one. Tied tensors
    share their memory, bfloat16 becomes float32, parameters become plain arrays, ordered
    dictionaries plain ones, and objects of settings `InertObject`s.

    Args:
        path: path of the file, usually `.pt` or `.bin`.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it is not a whole checkpoint, or holds anything but data; nothing is run.
    """
    path = pathlib.Path(path)
    if not path.is_file():
        raise FileNotFoundError(
            f"There is no such checkpoint; expected a file. Received: path={str(path)!r}"
        )
    try:
        with path.open("rb") as file:
            is_zip = file.read(4) == b"PK\x03\x04"
            file.seek(0)
            return (_read_zip if is_zip else _read_old)(file, os.fstat(file.fileno()).st_size)
    except (pickle.UnpicklingError, zipfile.BadZipFile, struct.error, OSError) as problem:
        reason = problem
    except (ArithmeticError, AttributeError, EOFError, LookupError) as problem:
        reason = f"it is damaged or cut off ({type(problem).__name__}: {problem})"
    except (NotImplementedError, RuntimeError, TypeError, ValueError) as problem:
        reason = f"it is damaged ({type(problem).__name__}: {problem})"
    raise ValueError(
        f"This torch checkpoint was not read: {reason}. Expected a whole file that torch.save "
        f"wrote, with weights and plain settings only. Received: path={str(path)!r}"
    )


def _refuse(sentence):
    raise pickle.UnpicklingError(sentence)


class _Stream:
    """Reads whole pieces of a file, and no more than its limit."""

    def __init__(self, file, left):
        self._file, self.left = file, left

    def read(self, count):
        self.left -= count
        data = self._file.read(count) if count >= 0 and self.left >= 0 else b""
        return data if len(data) == count else _refuse("it ends too early: it was cut off")

    def readline(self):
        line = self._file.readline(1024)
        self.left -= len(line)
        return line if line.endswith(b"\n") and self.left >= 0 else _refuse("a name has no end")

    readinto = None


class _Machine(pickle._Unpickler):
    """Unpickler of one pickle; `storage` is a function (kind, key, count) -> items."""

    dispatch: typing.ClassVar = {code: pickle._Unpickler.dispatch[code] for code in _OPCODES}

    def __init__(self, file, storage, size):
        self._storage, self._spent = storage, 0
        super().__init__(_Stream(file, min(size, MAX_PICKLE_BYTES)), encoding="utf-8")

    def find_class(self, module, name):
        full = f"{module}.{name}"
        if full in _INERT:
            return type("Inert", (InertObject,), {"class_name": full})
        if module == "torch" and name in _TYPES:
            return _Kind(name)
        makers = {
            "collections.OrderedDict": self._dictionary,
            "torch.Size": self._size,
            "torch._utils._rebuild_tensor": _tensor,
            "torch._utils._rebuild_tensor_v2": _tensor,
            "torch._utils._rebuild_parameter": _parameter,
        }
        return makers.get(full) or _refuse(
            f"it asks for {full[:200]!r}, which no file of weights needs; nothing was run"
        )

    def persistent_load(self, identity):
        if type(identity) is not tuple or len(identity) not in (5, 6) or identity[0] != "storage":
            _refuse("its pickle refers to something outside it that is not a storage")
        _, kind, key, _, count, *view = identity
        if type(kind) is not _Kind or type(key) is not str or not _are_counts((count,)):
            _refuse("a storage has no type, no key or no number of elements")
        items = self._storage(kind, key, count)
        if view and view[0] is not None:  # of the older format: (key, offset, count)
            _, offset, length = view[0]
            if not _are_counts((offset, length)) or offset + length > count:
                _refuse("a part of a storage lies outside of it")
            items = items[offset : offset + length]
        return kind, items

    def _dictionary(self, items=()):
        self._spend(items)
        return {_key(key): value for key, value in items}

    def _size(self, lengths=()):
        self._spend(lengths)
        return tuple(lengths)

    def _spend(self, items):
        self._spent += len(items)  # else a small file could copy a long list again and again
        if type(items) not in (list, tuple) or self._spent > MAX_PICKLE_BYTES:
            _refuse("its pickle makes far more than the weights of any model need")

    def load_build(self):  # never `__setstate__` or attributes of anything but our own
        state = self.stack.pop()
        if isinstance(self.stack[-1], InertObject):
            self.stack[-1].attributes = state if type(state) is dict else {}
        elif type(self.stack[-1]) is not dict:
            _refuse("its pickle gives a state to something else than settings")

    def load_setitem(self):
        value, key = self.stack.pop(), self.stack.pop()
        self._put([key, value])

    def load_setitems(self):
        self._put(self.pop_mark())

    def _put(self, items):
        if type(self.stack[-1]) is not dict or len(items) % 2:
            _refuse("its pickle puts items into something else than a dictionary")
        self.stack[-1].update(zip(map(_key, items[::2]), items[1::2], strict=True))

    def load_reduce(self):
        arguments = self.stack.pop()
        function = self.stack[-1]
        if not callable(function) or type(arguments) is not tuple:
            _refuse("its pickle calls what cannot be called")
        self.stack[-1] = function(*arguments)

    dispatch.update({98: load_build, 115: load_setitem, 117: load_setitems, 82: load_reduce})


class _Kind(str):
    """Type of a storage, by torch's name."""

    def items(self, raw):
        found = np.frombuffer(raw, _TYPES[self])
        if self == "BFloat16Storage":
            return (found.astype("<u4") << 16).view("<f4")
        return found != 0 if self == "BoolStorage" else found


def _key(key):
    """Returns a key; a tuple in a tuple in a tuple, hashed by recursion, could end the process."""
    is_small = isinstance(key, int) and abs(key) < 2**61 - 1
    return key if key is None or type(key) is str or is_small else _refuse("a key is no name")


def _are_counts(values):
    return type(values) is tuple and all(type(x) is int and 0 <= x < 2**62 for x in values)


def _parameter(tensor, *_):
    return tensor if isinstance(tensor, np.ndarray) else _refuse("a parameter is no tensor")


def _tensor(storage, offset, size, stride, *_):
    """Returns a read-only view of a storage, which must hold all of its elements, each once."""
    if type(storage) is not tuple or len(storage) != 2 or type(storage[0]) is not _Kind:
        _refuse("a tensor has no storage")
    items = storage[1]
    if not (_are_counts((offset,)) and _are_counts(size) and _are_counts(stride)):
        _refuse("a tensor's offset, size or stride is not made of counts")
    if len(size) != len(stride) or len(size) > 32 or math.prod(n for n in size if n) > 2**40:
        _refuse("a tensor has sizes that no array can have")
    steps = [step if length > 1 else 0 for length, step in zip(size, stride, strict=True)]
    last = offset + sum((n - 1) * step for n, step in zip(size, steps, strict=True))
    if 0 not in size and (last >= items.size or math.prod(size) > items.size):
        _refuse(f"a tensor of size {size} does not fit in its storage of {items.size} elements")
    if 0 in size:
        found = np.empty(size, items.dtype)
    else:
        width = items.dtype.itemsize
        found = np.ndarray(size, items.dtype, items, offset * width, [n * width for n in steps])
    found.flags.writeable = False
    return found


def _read_zip(file, size):
    with zipfile.ZipFile(file) as archive:
        infos = {info.filename: info for info in archive.infolist()}
        if any(
            info.compress_type or info.file_size != info.compress_size for info in infos.values()
        ):
            _refuse("its zip archive is compressed, which torch.save never does")
        if sum(info.file_size for info in infos.values()) > size:
            _refuse("its zip archive claims more content than the file has")
        roots = [n.removesuffix("data.pkl") for n in infos if n.endswith("/data.pkl")]
        if len(roots) != 1 or roots[0].count("/") != 1:
            _refuse("its zip archive does not hold exactly one NAME/data.pkl")
        if infos.get(f"{roots[0]}byteorder") and archive.read(f"{roots[0]}byteorder") != b"little":
            _refuse("it was not written on a little-endian machine")
        known = {}

        def storage(kind, key, count):
            if key not in known:
                known[key] = kind, kind.items(archive.read(f"{roots[0]}data/{key}"))
            if known[key][0] != kind or known[key][1].size != count:
                _refuse(f"its storage {key[:200]!r} has another type or size than its tensors say")
            return known[key][1]

        content = archive.read(f"{roots[0]}data.pkl")
        return _Machine(io.BytesIO(content), storage, len(content)).load()


def _read_old(file, size):
    """Reads pickles one after another, then for each storage its number of items and these."""
    known = {}

    def storage(kind, key, count):
        if key not in known:
            claimed = sum(np.dtype(_TYPES[k]).itemsize * items.size for k, items in known.values())
            if claimed + np.dtype(_TYPES[kind]).itemsize * count > size:
                _refuse("its storages claim more bytes than the file has")
            known[key] = kind, np.empty(count, kind.items(b"").dtype)
        if known[key][0] != kind or known[key][1].size != count:
            _refuse(f"its storage {key[:200]!r} is described in two ways")
        return known[key][1]

    def load(storage=lambda *_: _refuse("it refers to a storage outside of its object")):
        return _Machine(file, storage, size - file.tell()).load()

    if (load(), load()) != _MAGIC or load().get("little_endian") is not True:
        _refuse("it does not begin as torch.save begins a file on a little-endian machine")
    found, keys = load(storage), load()
    if type(keys) is not list or sorted(keys) != sorted(known):
        _refuse("its list of storages is not that of its tensors")
    for kind, items in (known[key] for key in keys):
        count = int.from_bytes(file.read(8), "little", signed=True)
        if count != items.size:
            _refuse(f"a storage has {count} elements, but its tensors claim {items.size}")
        raw = _Stream(file, size).read(count * np.dtype(_TYPES[kind]).itemsize)
        items[:] = kind.items(raw)
    return found
