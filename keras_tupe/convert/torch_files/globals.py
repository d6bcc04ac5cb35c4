"""The allow list: what the pickle in a torch file may name, and what we make of each.

A name is looked up here and nowhere else: no module is imported and no attribute fetched.
"""

import dataclasses
from collections.abc import Callable

import numpy as np

from keras_tupe.convert.torch_files.tensors import (
    ITEM_TYPES,
    StorageKind,
    TorchFileError,
    rebuild_tensor,
)

MAX_KEY = 2**61 - 1  # Python's modulus of hashes; old optimizers number weights by 48-bit addresses
# Records of settings, running means and numbers of NumPy in fairseq's checkpoints; never made real.
INERT_CLASSES = (
    ("argparse", "Namespace"),
    ("types", "SimpleNamespace"),
    ("numpy.core.multiarray", "scalar"),
    ("numpy._core.multiarray", "scalar"),
    ("numpy", "dtype"),
    ("_codecs", "encode"),  # how Python 3 writes bytes for Python 2
    ("fairseq.meters", "AverageMeter"),
    ("fairseq.meters", "TimeMeter"),
    ("fairseq.meters", "StopwatchMeter"),
    ("fairseq.logging.meters", "AverageMeter"),
    ("fairseq.logging.meters", "TimeMeter"),
    ("fairseq.logging.meters", "StopwatchMeter"),
)


def checked_key(key):
    """Returns a dictionary's key if it may be one: a text, `None`, or an integer of 61 bits.

    Args:
        key: anything.

    Raises:
        TorchFileError: if it is anything else. A tuple in a tuple in a tuple, hashed by recursion,
            could end the process, and larger integers can be chosen to have equal hashes.
    """
    if type(key) is str or key is None or (isinstance(key, int) and abs(key) < MAX_KEY):
        return key
    raise TorchFileError(f"its pickle has a dictionary with a key of type {type(key).__name__}")


class InertObject:
    """What stands for an object of a class that we do not import.

    Attributes:
        class_name: module and class, such as `"argparse.Namespace"`.
        attributes: dictionary of the object's attributes by name, where the file gives one.
    """

    def __init__(self, class_name, *_):
        self.class_name = class_name
        self.attributes = {}

    def set_state(self, state):
        """Takes the attributes that the file gives; a state of another form is not kept."""
        if type(state) is dict:
            self.attributes = state

    def __repr__(self):
        return f"InertObject({self.class_name!r}, {len(self.attributes)} attributes)"


@dataclasses.dataclass(frozen=True, eq=False)
class Allowed:
    """A name on the list.

    Args:
        name: module and name.
        make: function of the file's arguments to the object.
        storage_kind: `StorageKind` if the name is a storage class, else `None`.
    """

    name: str
    make: Callable
    storage_kind: StorageKind | None = None


def find(module, name):
    """Returns the `Allowed` entry.

    Args:
        module: text, as in the file.
        name: text, as in the file.

    Raises:
        TorchFileError: if it is not on the list.
    """
    entry = _ALLOWED.get((module, name))
    if entry is None:
        raise TorchFileError(
            f"it asks for {f'{module}.{name}'[:200]!r}, which is not among the few names that a "
            "file of weights may hold; nothing in the file was run"
        )
    return entry


def _parameter(tensor, *_):
    if not isinstance(tensor, np.ndarray):
        raise TorchFileError("a parameter is not made of a tensor")
    return tensor


def _ordered_dictionary(items=()):
    if type(items) not in (list, tuple) or any(
        type(pair) not in (list, tuple) or len(pair) != 2 for pair in items
    ):
        raise TorchFileError("an ordered dictionary is not made of keys and values")
    return {checked_key(key): value for key, value in items}  # keeps the order too


def _size(lengths=()):
    if type(lengths) not in (list, tuple):
        raise TorchFileError("a torch.Size is not made of a tuple")
    return tuple(lengths)


def _checked(name, make, fewest, most):
    def call(*arguments):
        if not fewest <= len(arguments) <= most:
            raise TorchFileError(f"it gives {name} {len(arguments)} arguments")
        return make(*arguments)

    return Allowed(name, call)


def _inert(module, name):
    class_name = f"{module}.{name}"
    return Allowed(class_name, lambda *_: InertObject(class_name))


def _storage(name):
    def make(*_):
        raise TorchFileError(f"it makes a torch.{name} without a tensor")

    return Allowed(f"torch.{name}", make, StorageKind(name))


_ALLOWED = {
    ("collections", "OrderedDict"): _checked("OrderedDict", _ordered_dictionary, 0, 1),
    ("torch", "Size"): _checked("torch.Size", _size, 0, 1),
    ("torch._utils", "_rebuild_tensor"): _checked("_rebuild_tensor", rebuild_tensor, 4, 4),
    ("torch._utils", "_rebuild_tensor_v2"): _checked("_rebuild_tensor_v2", rebuild_tensor, 6, 7),
    ("torch._utils", "_rebuild_parameter"): _checked("_rebuild_parameter", _parameter, 3, 3),
    **{("torch", name): _storage(name) for name in ITEM_TYPES},
    **{(module, name): _inert(module, name) for module, name in INERT_CLASSES},
}
