"""Storages and tensors of a torch file as NumPy arrays, checked before memory is spent."""

import dataclasses
import math

import numpy as np

BFLOAT16 = "BFloat16Storage"
# Little-endian, as on every machine that a checkpoint is likely to come from.
ITEM_TYPES = {
    "FloatStorage": np.dtype("<f4"),
    "DoubleStorage": np.dtype("<f8"),
    "HalfStorage": np.dtype("<f2"),
    BFLOAT16: np.dtype("<u2"),
    "LongStorage": np.dtype("<i8"),
    "IntStorage": np.dtype("<i4"),
    "ShortStorage": np.dtype("<i2"),
    "CharStorage": np.dtype("i1"),
    "ByteStorage": np.dtype("u1"),
    "BoolStorage": np.dtype("u1"),
}
# What NumPy holds, where it differs from what the file holds.
ARRAY_TYPES = {BFLOAT16: np.dtype("<f4"), "BoolStorage": np.dtype("?")}
MAX_DIMENSIONS = 32  # NumPy 1.26's limit
MAX_EMPTY_SIZE = 2**40  # product of the other sizes of a tensor with a size of 0


class TorchFileError(Exception):
    """What is wrong with a torch file, in words; `read_torch_file` adds the path."""


@dataclasses.dataclass(frozen=True)
class StorageKind:
    """The type of a storage's items, by torch's name for it, such as `"FloatStorage"`."""

    name: str

    @property
    def item_bytes(self):
        """Bytes of one item in the file."""
        return ITEM_TYPES[self.name].itemsize

    def empty(self, count):
        """Returns an array for `count` items, `(count,)`, to be filled later."""
        return np.empty(count, ARRAY_TYPES.get(self.name, ITEM_TYPES[self.name]))

    def decode(self, raw):
        """Returns the items in `raw`, the bytes of a file, `(count,)`; bfloat16 as float32."""
        items = np.frombuffer(raw, ITEM_TYPES[self.name])
        if self.name == BFLOAT16:  # the upper half of a float32
            return (items.astype("<u4") << 16).view("<f4")
        return items != 0 if self.name == "BoolStorage" else items


@dataclasses.dataclass(frozen=True, eq=False)
class Storage:
    """A block of items that tensors are views of.

    Args:
        kind: `StorageKind`.
        items: `(count,)`.
    """

    kind: StorageKind
    items: np.ndarray


def rebuild_tensor(storage, offset, size, stride, *_):
    """Returns the tensor as a read-only view of the storage: tied tensors share their memory.

    Args:
        storage: `Storage`.
        offset: index of the first element in the storage.
        size: tuple of ints, the shape.
        stride: tuple of ints, in elements, of equal length.

    Raises:
        TorchFileError: if an argument is of another kind, an element would lie outside the
            storage, or the view repeats elements (a small file could then ask for any memory).
    """
    if not isinstance(storage, Storage):
        raise TorchFileError("a tensor has no storage")
    _check_counts("offset", (offset,))
    _check_counts("size", size)
    _check_counts("stride", stride)
    if len(size) != len(stride) or len(size) > MAX_DIMENSIONS:
        raise TorchFileError(
            f"a tensor has {len(size)} sizes and {len(stride)} strides; expected equally many, "
            f"at most {MAX_DIMENSIONS}"
        )
    items = storage.items
    if 0 in size:
        if math.prod(length for length in size if length) > MAX_EMPTY_SIZE:
            raise TorchFileError("an empty tensor has sizes that no array can have")
        return _read_only(np.empty(size, items.dtype))
    last = offset + sum((length - 1) * step for length, step in zip(size, stride, strict=True))
    if last >= items.size or math.prod(size) > items.size:
        raise TorchFileError(
            f"a tensor of size {size}, stride {stride} and offset {offset} does not fit in its "
            f"storage of {items.size} elements"
        )
    # Torch writes any stride for a size of 1, which may be more bytes than NumPy can count.
    steps = [step if length > 1 else 0 for length, step in zip(size, stride, strict=True)]
    width = items.dtype.itemsize
    steps = [step * width for step in steps]
    return _read_only(np.ndarray(size, items.dtype, items, offset * width, steps))


def _read_only(tensor):
    tensor.flags.writeable = False
    return tensor


def _check_counts(name, values):
    if type(values) is not tuple or any(
        type(value) is not int or not 0 <= value < 2**62 for value in values
    ):
        raise TorchFileError(f"a tensor's {name} is not made of counts")
