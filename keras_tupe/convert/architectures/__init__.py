"""The registry of Hugging Face's architectures: one file here is one, called as its `model_type`.

For whoever adds one: a file fills the record `Converter` under `CONVERTER`, and reading, writing,
commands and tests follow from it; `load_file` takes one from outside the package. All that such a
file needs is here: the record, its parts and kinds of entries, and the `Frame` of a tokenizer. The
module of an architecture that a new one is like, such as `bert`, has names to start from.
"""

import dataclasses
import inspect
from collections.abc import Callable, Mapping

from keras_tupe._keywords import did_you_mean
from keras_tupe._registry import Registry
from keras_tupe.check import is_integer, is_number
from keras_tupe.convert.tokenizer_files import Frame
from keras_tupe.tasks import TASKS

__all__ = [
    "ACTIVATION",
    "CONVERTERS",
    "COUNT",
    "FLAG",
    "NUMBER",
    "OTHER_RATE",
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


@dataclasses.dataclass(frozen=True, eq=False)
class Kind:
    """Kind of a value in a configuration: what it must be, in code and in words.

    Attributes:
        expected: in words, such as "an integer > 0".
        fits: function of a value -> whether it is one.
    """

    expected: str
    fits: Callable


ACTIVATIONS = {  # by their names; of several the first is written
    "gelu": "gelu",
    "gelu_new": "gelu_approximate",
    "gelu_pytorch_tanh": "gelu_approximate",
    "gelu_fast": "gelu_approximate",
}
# Sizes, such as the width.
SIZE = Kind("an integer > 0", lambda value: is_integer(value) and value > 0)
# Numbers of what there may be none of.
COUNT = Kind("an integer >= 0", lambda value: is_integer(value) and value >= 0)
# Positive numbers, such as the epsilon of a normalization.
NUMBER = Kind("a number > 0", lambda value: is_number(value) and 0 < value < 1e30)
# Dropout rates; written as ours where they have no argument here.
RATE = Kind("a share in [0, 1)", lambda value: is_number(value) and 0 <= value < 1)
# Those of what ours has not, 0 by default.
OTHER_RATE = Kind(RATE.expected, RATE.fits)
# True or false.
FLAG = Kind("true or false", lambda value: isinstance(value, bool))
# Names of activations that are known here.
ACTIVATION = Kind(
    f"one of {list(ACTIVATIONS)}", lambda value: isinstance(value, str) and value in ACTIVATIONS
)
# Texts.
TEXT = Kind("a text", lambda value: isinstance(value, str))
# In place of the default of an entry that a file must have.
REQUIRED = object()
_NEEDED = ("vocabulary_size", "num_layers", "num_heads", "hidden_dim", "max_sequence_length")
_NEEDED += ("dropout",)


def built_as(attention_pattern="full", position="absolute"):
    """Returns a function that says whether a backbone has this pattern and these positions.

    Args:
        attention_pattern: name of the pattern.
        position: name of the positional method.
    """

    def suits(backbone):
        found = (getattr(backbone, name, None) for name in ("attention_pattern", "position"))
        return tuple(found) == (attention_pattern, position)

    return suits


def same(value, config):
    """Returns a value as it is."""
    return value


@dataclasses.dataclass(frozen=True)
class Entry:
    """An entry of their configuration, and the argument of ours that it is.

    Attributes:
        theirs: its name.
        ours: argument of the backbone, or `None` for one that `Converter.read` looks at, or that is
            of training alone. A `RATE` without one is written as the dropout rate.
        kind: its `Kind`.
        default: what their code takes where a file leaves it out. Defaults to an error.
        read, write: functions of a value and their configuration: ours from theirs, and back.
    """

    theirs: str
    ours: str | None
    kind: Kind = SIZE
    default: object = REQUIRED
    read: Callable = same
    write: Callable = same


@dataclasses.dataclass(frozen=True)
class Head:
    """What a task has beside the trunk.

    Attributes:
        theirs: name of their class.
        names: path of a layer or weight of ours -> theirs, as in `Converter`.
        options: function of the arguments of the backbone -> options of the task, which must be so.
        needs: argument of the backbone -> the value that it must have beside such a head.
        option: name of the option of `from_hf` that asks for it; without, it is found by itself.
        rows: function of the backbone and the configuration -> options of the preprocessor.
    """

    theirs: str
    names: Mapping = dataclasses.field(default_factory=dict)
    options: Callable = lambda arguments: {}
    needs: Mapping = dataclasses.field(default_factory=dict)
    option: str = ""
    rows: Callable = lambda backbone, config: {
        "sequence_length": backbone.max_sequence_length,
        "segments": bool(backbone.num_segments),
    }


@dataclasses.dataclass(frozen=True)
class Form:
    """How a weight is shaped, where it is not as everywhere.

    Attributes:
        ours: function of their array and our shape.
        theirs: function of our array; `None` for a part of theirs whose whole another form has.
    """

    ours: Callable
    theirs: Callable | None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Converter:
    """An architecture between Hugging Face and here.

    In names `#` stands for the number of a layer.

    Attributes:
        title: what people call it.
        model_type: as in `config.json`.
        trunk: name of their class without a head.
        heads: class name of a task of ours -> `Head`; the first is made where no head is found.
        others: endings of their classes whose trunk can be read, behind `For`.
        entries: the `Entry`s.
        fixed: entry -> (value that it must have or be left out, what another one would mean).
        ignored: entries that change nothing.
        ours: arguments of the backbone that are always so.
        read: function of their complete configuration -> more arguments. It may raise `ValueError`.
            What else it takes by name are options of `from_hf`.
        write: function of a backbone, the entries so far and a preprocessor or `None` -> more
            entries.
        plain: function of a configuration of ours -> the form of it that `read` gives.
        options: function of a backbone -> options of `read`, which stand in no configuration.
        alone: options of `read` for what theirs computes of token ids and a mask alone.
        suits: function of a backbone -> whether it is written so where nobody says how; BERT is
            what it is where nothing suits.
        names: path of a layer of ours -> their module; a path of a weight -> their weight.
        prefix: their name of the trunk in a model with a head.
        unprefixed: weights beside the trunk that belong to no layer of ours.
        linear: whether kernels are `(out, in)`, as torch's `Linear` has them.
        fused: module with a `#` -> names of its parts, side by side in its weight and bias.
        fused_by_head: whether they are side by side head by head.
        forms: path of a weight of ours, with `#` -> `Form`.
        skipped: function of the configuration -> rows of a position table that no token has.
        segments: rows of zeros of a segment table that their code needs and ours has not.
        tied: copy -> weight that it must be equal to, and stand for where that is missing.
        dropped: their weight, or a beginning with a point at its end -> the reason.
        unused: function of a backbone -> module of theirs, with `#`, that it has no place for ->
            the reason.
        copies: module of theirs -> that whose weights it has, where ours has none of its own.
        absent: path of a weight of ours that they have not, with `#` -> the reason; zero.
        constants: function of a backbone -> weights of theirs that ours computes or has not:
            written, and compared where a file has them.
        spellings: pairs of a regular expression and what stands for it in names of old files.
        frame: the `Frame` of its tokenizer.
        ids: entry about a special token -> (attribute of our tokenizer, id without one).
    """

    title: str
    model_type: str
    trunk: str
    heads: Mapping
    entries: tuple
    names: Mapping
    frame: object
    ids: Mapping
    others: tuple = ()
    fixed: Mapping = dataclasses.field(default_factory=dict)
    ignored: tuple = ()
    ours: Mapping = dataclasses.field(default_factory=dict)
    read: Callable = lambda config: {}
    write: Callable = lambda backbone, config, preprocessor: {}
    plain: Callable = lambda config: config
    options: Callable = lambda backbone: {}
    alone: Mapping = dataclasses.field(default_factory=dict)
    suits: Callable = lambda backbone: False
    prefix: str = ""
    unprefixed: tuple = ()
    linear: bool = True
    fused: Mapping = dataclasses.field(default_factory=dict)
    fused_by_head: bool = False
    forms: Mapping = dataclasses.field(default_factory=dict)
    skipped: Callable = lambda config: 0
    segments: int = 0
    tied: Mapping = dataclasses.field(default_factory=dict)
    dropped: Mapping = dataclasses.field(default_factory=dict)
    unused: Callable = lambda backbone: {}
    copies: Mapping = dataclasses.field(default_factory=dict)
    absent: Mapping = dataclasses.field(default_factory=dict)
    constants: Callable = lambda backbone: {}
    spellings: tuple = ()

    def __post_init__(self):
        ours = {entry.ours for entry in self.entries}
        missing = [name for name in _NEEDED if name not in ours]
        if missing or not self.heads:
            raise ValueError(
                "A converter must have a head, and entries for the sizes and the dropout rate. "
                f"Received: model_type={self.model_type!r} without {', '.join(missing) or 'heads'}"
            )

    @property
    def asked(self):
        """Names of the options of `from_hf`, a set: those of `read`, and heads that are asked."""
        names = list(inspect.signature(self.read).parameters)[1:]
        heads = {head.option for head in self.heads.values() if head.option}
        return heads | set(names)


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
