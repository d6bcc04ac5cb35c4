"""What a converter must know of an encoder with BERT's trunk."""

import dataclasses
from collections.abc import Callable, Mapping

from keras_tupe.convert.bert.layout import WORDS
from keras_tupe.convert.tokenizer_files import FAIRSEQ_IDS, Frame

_TASK = "the head of a task; fine-tune a new one"
_CONSTANT = "a constant, not a weight"
# The same functions here by their names there; the first of several is what we write.
ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_new": "gelu_approximate",
    "gelu_pytorch_tanh": "gelu_approximate",
    "gelu_fast": "gelu_approximate",
}
ANY = object()  # in `expected`: whatever it is


def nothing(*_):
    """Does nothing, and says so: an empty dictionary."""
    return {}


@dataclasses.dataclass(frozen=True)
class Encoder:
    """A kind of encoder, between Hugging Face and here.

    A configuration is complete: it has all entries, those that the file left out too.

    Attributes:
        name: what people call it.
        model_type: the `model_type` of its configuration.
        architectures: names of its classes: first the one without a head, then that for masked LM,
            which are what we write, then others whose encoder can be read.
        defaults: what its configuration has where a file leaves it out.
        frame: its `Frame`.
        arguments: function: configuration -> arguments of `TupeBackbone` beside those of every
            trunk.
        layout: function: backbone -> dictionary of paths to `Place`s.
        expected: attributes of a backbone that can be written -> what they must be, or `ANY`.
        refused: function: backbone -> sentences about what else it cannot have.
        entries: function: backbone -> entries of the configuration beside those of every trunk.
        options: options of the position method that must be so.
        ids: which ids of special tokens its configuration has, see `special_ids`.
        fixed: entries that must be so, see `ConfigCheck.fixed`.
        head_follows: whether the masked-LM head has the activation of the blocks. Otherwise it has
            the exact GELU.
        integers: entries that must be positive integers if they are there.
        without_effect: names of entries that change nothing.
        check: function: `ConfigCheck`, configuration -> notes more problems.
        notes: function: configuration -> sentences for the report.
        heads: beginnings of the names of what is not in the encoder.
        bias: the bias of the masked-LM head.
        decoder: the output matrix, a copy of the token embedding, without `.weight`.
        discriminator: beginning of the names of a head that finds replaced tokens; `None` if there
            is no such model.
        dropped: names, or beginnings of them, that are left out -> the reason.
        absent: function: backbone -> paths of our weights that it has not, zero here -> the reason.
        change: function: names, arrays, arguments, configuration -> changes what was read, in
            place, and returns what it leaves out.
        change_back: function: arrays, backbone, entries -> changes what is written, in place.
    """

    name: str
    model_type: str
    architectures: tuple
    defaults: Mapping
    frame: Frame
    arguments: Callable
    layout: Callable
    expected: Mapping
    entries: Callable
    options: Mapping = dataclasses.field(default_factory=dict)
    ids: Mapping = dataclasses.field(default_factory=lambda: FAIRSEQ_IDS)
    fixed: Mapping = dataclasses.field(default_factory=dict)
    head_follows: bool = False
    integers: tuple = ("max_position_embeddings", "type_vocab_size")
    without_effect: frozenset = frozenset()
    check: Callable = nothing
    refused: Callable = nothing
    notes: Callable = nothing
    heads: tuple = ("lm_head.",)
    bias: str = "lm_head.bias"
    decoder: str = "lm_head.decoder"
    discriminator: str | None = None
    dropped: Mapping = dataclasses.field(default_factory=dict)
    absent: Callable = nothing
    change: Callable = nothing
    change_back: Callable = nothing

    @property
    def prefix(self):
        """Name of the encoder in a model with a head."""
        return f"{self.model_type}."

    @property
    def tied(self):
        """The weights that must be equal to others: name -> name of the other."""
        found = {f"{self.decoder}.weight": WORDS, f"{self.decoder}.bias": self.bias}
        return {name: other for name, other in found.items() if name != other}


def tasks(name, *others):
    """Returns the names of the classes of a model: its own, for masked LM, and for other tasks."""
    of_tasks = (
        *("SequenceClassification", "MultipleChoice", "TokenClassification"),
        "QuestionAnswering",
    )
    known = ("MaskedLM", *of_tasks, *others)
    return (f"{name}Model", *(f"{name}For{task}" for task in known))


DROPPED = {
    "embeddings.position_ids": _CONSTANT,
    "embeddings.token_type_ids": _CONSTANT,
    "classifier.": _TASK,
    "qa_outputs.": _TASK,
}
