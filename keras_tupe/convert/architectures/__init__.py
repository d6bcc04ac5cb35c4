"""The registry of Hugging Face's architectures: one file here is one, called as its `model_type`.

For whoever adds one: a file fills the record `Converter` under `CONVERTER`, and reading, writing,
commands and tests follow from it; `load_file` takes one from outside the package. All that such a
file needs is here: the record, its parts and kinds of entries, and the `Frame` of a tokenizer. The
module of an architecture that a new one is like, such as `bert`, has names to start from.
"""

from keras_tupe._keywords import did_you_mean
from keras_tupe._registry import Registry
from keras_tupe.convert.architectures._record import (
    ACTIVATION,
    COUNT,
    FLAG,
    NUMBER,
    RATE,
    REQUIRED,
    SIZE,
    TEXT,
    Converter,
    Entry,
    Form,
    Head,
    Kind,
    built_as,
)
from keras_tupe.convert.tokenizer_files import Frame
from keras_tupe.tasks import TASKS

__all__ = [
    "ACTIVATION",
    "CONVERTERS",
    "COUNT",
    "FLAG",
    "NUMBER",
    "RATE",
    "REQUIRED",
    "SIZE",
    "TEXT",
    "Converter",
    "Entry",
    "Form",
    "Frame",
    "Head",
    "Kind",
    "built_as",
    "by_type",
    "load_file",
]

REGISTRY = Registry(__name__, __path__, Converter, "converter", "model_type", "converter")
# The records of all architectures, by the name of the file; `load_file` adds more.
CONVERTERS = REGISTRY.records


def by_type():
    """Returns the records of all architectures by `model_type`, a dictionary."""
    return {record.model_type: record for record in CONVERTERS.values()}


def load_file(path):
    """Adds the architecture in a Python file, and returns its `model_type`.

    `from_hf`, `to_hf` and `load` know it from then on. The file defines `CONVERTER`, a `Converter`
    of this module; it is run, so read it before.

    Args:
        path: path of the file.

    Raises:
        ValueError: if the file cannot be run or has no `CONVERTER`; if there is an architecture of
            its `model_type` already, or a head belongs to no task.
    """
    name = REGISTRY.load_file(path)
    record, known = CONVERTERS[name], {task.__name__ for task in TASKS.values()}
    kind, problem = record.model_type, None
    if any(x.model_type == kind for other, x in CONVERTERS.items() if other != name):
        problem = f"There is a converter of this `model_type` already. Received: {kind!r}"
    elif unknown := [head for head in record.heads if head not in known]:
        nearest = did_you_mean(unknown[0], known)
        problem = f"A head must be that of a task's class.{nearest} Received: {unknown[0]!r}"
    if problem:
        REGISTRY.forget(name)
        raise ValueError(f"{problem} in path={str(path)!r}")
    return kind
