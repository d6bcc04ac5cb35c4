"""Settings of a trunk: one record, from which arguments, files, checks and sizes follow."""

import dataclasses
import os

import numpy as np

from keras_tupe import attention_patterns, positions
from keras_tupe.layers._checks import is_integer, is_number
from keras_tupe.layers.gelu import activation_of


def setting(check, help, default=dataclasses.MISSING):
    """Returns a field with its check, (name, value) -> the value to keep, and what it means."""
    return dataclasses.field(default=default, metadata={"check": check, "help": help})


def _checked(words, holds, keep=lambda value: value):
    def check(name, value):
        if not holds(value):
            raise ValueError(f"`{name}` must be {words}. Received: {name}={value!r}")
        return keep(value)

    return check


def whole(least=1, none=False, words=None):
    """Returns the check of an integer, of NumPy's too, which is kept as Python's."""
    words = words or ("a positive integer" if least == 1 else f"an integer >= {least}")
    return _checked(
        f"{words} or None" if none else words,
        lambda value: (none and value is None) or (is_integer(value) and value >= least),
        lambda value: value if value is None else int(value),
    )


def known(find):
    """Returns the check of a name that a function finds, or refuses in its own words."""
    return lambda name, value: find(value) and value


def _anything(name, value):
    return value


FLAG = _checked("True or False", lambda value: isinstance(value, bool | np.bool_), bool)
SHARE = _checked("a number in [0, 1)", lambda value: is_number(value) and 0 <= value < 1)
NOT_NEGATIVE = _checked("a number >= 0", lambda value: is_number(value) and value >= 0)


@dataclasses.dataclass(frozen=True)
class TrunkConfig:
    """What a stack of blocks is made of; `TupeBackbone` explains each field.

    Options are resolved, NumPy's integers are Python's, and fields that say nothing are `None`:
    equal trunks have equal configurations.

    Raises:
        ValueError: for impossible values, unknown methods, patterns or options, or fields that do
            not fit each other.
        TypeError: if the options are not a dictionary.

    Example:
        >>> config = TrunkConfig(100, 2, 4, 16, 32, "rope", num_groups=1)
        >>> config.group(1), config.dims(dtype="float32").key_dim
        (0, 4)
    """

    vocabulary_size: int = setting(whole(), "number of tokens")
    num_layers: int = setting(whole(), "number of blocks")
    num_heads: int = setting(whole(), "number of attention heads")
    hidden_dim: int = setting(whole(), "width of the hidden states")
    intermediate_dim: int = setting(whole(), "width of the feed-forward networks")
    position: str = setting(known(positions.get), "name of a positional method", "tupe_r")
    position_options: dict | None = setting(_anything, "its options, over its defaults", None)  # noqa: RUF009
    dropout: float = setting(SHARE, "rate of embeddings, scores and sublayer outputs", 0.1)
    max_sequence_length: int = setting(whole(), "rows of position tables, in tokens", 512)
    num_segments: int = setting(
        whole(0, words="an integer >= 0, where 0 means that the model takes no `segment_ids`"),
        "number of segments, 0 for no `segment_ids`",
        0,
    )
    normalize_first: bool = setting(FLAG, "pre-LN blocks and a last normalization", False)
    initializer_range: float = setting(NOT_NEGATIVE, "standard deviation of new weights", 0.02)
    layer_norm_epsilon: float = setting(NOT_NEGATIVE, "epsilon of layer normalizations", 1e-5)
    zero_padded_embeddings: bool = setting(FLAG, "padded tokens enter the blocks as zeros", False)
    attention_pattern: str = setting(known(attention_patterns.get), "who attends to whom", "full")
    pattern_options: dict | None = setting(_anything, "its options, over its defaults", None)  # noqa: RUF009
    activation: str = setting(known(activation_of), "of the feed-forward networks", "gelu")
    normalize_embeddings: bool = setting(FLAG, "layer normalization of the embeddings", True)
    embedding_dim: int | None = setting(whole(none=True), "width of embeddings, if another", None)
    num_groups: int | None = setting(whole(none=True), "blocks with weights of their own", None)
    memory_length: int = setting(
        whole(0, words="an integer >= 0, where 0 means no memory"), "tokens before a segment", 0
    )
    segment_length: int | None = setting(whole(none=True), "tokens of a segment", None)
    kept_heads: list | None = setting(_anything, "heads that each layer has, if not all", None)  # noqa: RUF009
    scale_embeddings: bool = setting(FLAG, "token vectors times sqrt(hidden_dim)", False)

    def __post_init__(self):
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            self._keep(field.name, field.metadata["check"](field.name, value))
        self._keep("position_options", self.method.resolve(self.position_options))
        self._keep("pattern_options", self.pattern.resolve(self.pattern_options))
        self._keep("segment_length", self.segment_length or self.memory_length or None)
        for holds, sentence, *names in self._relations():
            if not holds:
                received = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
                raise ValueError(f"{sentence} Received: {received}")
        self.method.check_pattern(self.position, self.attention_pattern)
        if self.frame:
            self.method.check_memory(self.position, self.position_options)
        if self.kept_heads is not None:
            kept = [[int(head) for head in heads] for heads in self.kept_heads]
            is_whole = all(len(heads) == self.num_heads for heads in kept)
            self._keep("kept_heads", None if is_whole else kept)
        if self.kept_heads is not None:
            self.method.check_pruned(self.position)

    def _keep(self, name, value):
        object.__setattr__(self, name, value)

    @classmethod
    def of(cls, values):
        """Returns the configuration of those values of a dictionary that are its fields."""
        names = {field.name for field in dataclasses.fields(cls)}
        return cls(**{name: value for name, value in values.items() if name in names})

    def _relations(self):
        """Yields (whether it holds, sentence, names of the fields); later ones rely on earlier."""
        layers, heads, longest = self.num_layers, self.num_heads, self.max_sequence_length
        sentence = (
            "`hidden_dim` must be divisible by `num_heads`, because every head gets an equal share."
        )
        yield self.hidden_dim % heads == 0, sentence, "hidden_dim", "num_heads"
        sentence = (
            "`num_groups` must divide `num_layers`: the same number of layers uses each block."
        )
        yield layers % (self.num_groups or 1) == 0, sentence, "num_groups", "num_layers"
        rows = [*filter(is_integer, self.position_options.values())]
        rows += [longest] if self._has_tables else []
        count, memory = max([least_weights(vars(self)), *rows]), _memory()
        sentence = (
            f"The weights of this encoder would take more than this machine's {memory / 2**30:.1f} "
            f"GiB of memory: there are at least {readable(count)} of them. Choose smaller sizes."
        )
        sizes = ("vocabulary_size", "num_layers", "hidden_dim", "intermediate_dim", "num_segments")
        sizes += ("embedding_dim", "max_sequence_length", "position_options")
        yield 4 * count <= memory, sentence, *sizes
        kept = self.kept_heads
        is_list = isinstance(kept, list | tuple) and len(kept) == layers
        fits = kept is None or (is_list and all(_are_heads(some, heads) for some in kept))
        sentence = (
            f"`kept_heads` must be a list of {layers} lists, one for each layer, of ascending "
            f"numbers of heads from 0 to {heads - 1}, at least one in each, since a layer keeps "
            "one head."
        )
        yield fits, sentence, "kept_heads"

        def is_one(values):
            first = (self.group(layer) * self._group_size for layer in range(layers))
            return all(value == values[at] for value, at in zip(values, first, strict=True))

        sentence = "Layers that share a block must keep the same heads."
        fits = kept is None or is_one([*map(list, kept)])
        yield fits, sentence, "kept_heads", "num_layers", "num_groups"
        seen = self._seen()  # refuses impossible options
        sentence = (
            "There must not be more global tokens than a sequence has tokens, "
            "`max_sequence_length`."
        )
        most = max((one.num_global for one in seen if one), default=0)
        yield most <= longest, sentence, "pattern_options", "max_sequence_length"
        sentence = (
            f"Layers that share a block must see the same tokens, and the pattern "
            f"{self.attention_pattern!r} differs between them. Choose other groups or options."
        )
        yield is_one(seen), sentence, "num_groups", "num_layers", "pattern_options"
        if not self.frame:
            return
        sentence = (
            "Segments with a memory need an attention pattern in which no token sees later ones, "
            "and what it sees depends on the distance alone, such as 'causal', or "
            "'sliding_window' with causal=True and no global tokens."
        )
        fits = self.is_causal and not any(one.num_global or one.also for one in seen)
        lengths = ("memory_length", "segment_length")
        yield fits, sentence, "attention_pattern", "pattern_options", *lengths
        sentence = (
            f"The position tables of {self.position!r} need a row for each token of memory and "
            f"segment: make max_sequence_length at least memory_length + segment_length = "
            f"{self.frame}."
        )
        yield not self._has_tables or self.frame <= longest, sentence, "max_sequence_length"

    # What follows from the fields

    @property
    def method(self):
        """The `PositionMethod`."""
        return positions.get(self.position)

    @property
    def pattern(self):
        """The `AttentionPattern`."""
        return attention_patterns.get(self.attention_pattern)

    def _seen(self):
        layers = range(self.num_layers)
        return [self.pattern.visible(layer, self.pattern_options) for layer in layers]

    @property
    def is_causal(self):
        """Whether no token attends to a later one, in any layer."""
        return all(visible is not None and visible.is_causal for visible in self._seen())

    @property
    def _has_tables(self):
        return self.method.has_length_limit(self.position_options)

    @property
    def has_length_limit(self):
        """Whether position tables bound the length to `max_sequence_length`."""
        # with segments they have rows for memory and segment, and a row has any length
        return not self.frame and self._has_tables

    @property
    def frame(self):
        """Tokens of memory and segment together; `None` where a row is attended to as a whole."""
        return self.segment_length and self.memory_length + self.segment_length

    @property
    def embedding_width(self):
        """Size of the token vectors."""
        return self.embedding_dim or self.hidden_dim

    @property
    def input_names(self):
        """Names of the inputs, all integers `(batch, length)`."""
        return ("token_ids", "padding_mask", *(("segment_ids",) if self.num_segments else ()))

    @property
    def _group_size(self):
        return self.num_layers // (self.num_groups or self.num_layers)

    def group(self, layer):
        """Returns the number of the block that a layer uses."""
        return layer // self._group_size

    @property
    def heads(self):
        """Heads of each layer by their numbers, a list of lists."""
        return self.kept_heads or [list(range(self.num_heads)) for _ in range(self.num_layers)]

    @property
    def heads_of_any(self):
        """Heads that any layer has, ascending: those of shared position terms."""
        return tuple(sorted({head for heads in self.kept_heads or self.heads for head in heads}))

    def dims(self, dtype, layer=None):
        """Returns the `Dims` of what layers share, or of the attention of a layer."""
        names = {field.name for field in dataclasses.fields(positions.Dims) if field.init}
        given = {name: value for name, value in vars(self).items() if name in names}
        given |= {"key_dim": self.hidden_dim // self.num_heads, "dtype": dtype}
        heads = self.heads_of_any if self.kept_heads else None
        if heads is not None:
            given |= {"num_heads": len(heads), "num_original_heads": self.num_heads}
        if layer is not None:
            given["layer_index"] = layer
        if layer is not None and heads is not None:
            shared, heads = heads, tuple(self.kept_heads[layer])
            given["num_heads"] = len(heads)
            given["shared_heads"] = None if heads == shared else tuple(map(shared.index, heads))
        return positions.Dims(**given, heads=heads)

    def check_length(self, length):
        """Refuses a known length of fewer tokens than there are global ones."""
        count = self.pattern_options.get("num_global", 0)
        if length is not None and isinstance(count, int) and length < count:
            raise ValueError(
                f"Sequences must have at least as many tokens as there are global ones, "
                f"num_global={count}. Pad them. Received: a length of {length}"
            )

    def as_json(self):
        """Returns all fields as a dictionary for a file."""
        return {
            **vars(self),
            "position_options": dict(self.position_options),
            "pattern_options": dict(self.pattern_options),
            "kept_heads": self.kept_heads and [list(heads) for heads in self.kept_heads],
        }


def _are_heads(heads, num_heads):
    return (
        isinstance(heads, list | tuple)
        and len(heads) > 0
        and all(is_integer(head) and 0 <= head < num_heads for head in heads)
        and list(heads) == sorted(set(heads))
    )


def _memory():
    """Returns the memory of the machine in bytes, infinity where it cannot be told."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # not on this system
        return float("inf")


def least_weights(sizes):
    """Returns how many weights a trunk of unchecked settings has at least, positions left out."""
    names = ("vocabulary_size", "num_layers", "hidden_dim", "intermediate_dim", "num_segments")
    vocabulary, layers, hidden, intermediate, segments, width, groups, heads = (
        max(0, int(sizes[name])) if is_integer(sizes.get(name)) else 0
        for name in (*names, "embedding_dim", "num_groups", "num_heads")
    )
    kept = sizes.get("kept_heads")
    counts = [len(x) for x in kept if isinstance(x, list)] if isinstance(kept, list) else []
    share = min(1, min(counts) / heads) if counts and heads else 1
    embeddings = (vocabulary + segments) * (width or hidden) + width * hidden
    blocks = (groups or layers) * 2 * hidden * intermediate
    return embeddings + blocks + int((groups or layers) * 3 * hidden * hidden * share)


def readable(number):
    """Returns an integer for a message, however large it is."""
    return f"{number:,}" if abs(number) < 10**18 else "more than 10**18"
