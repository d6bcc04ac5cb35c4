"""The record that every positional method fills."""

import dataclasses
import inspect
from collections.abc import Callable, Mapping

import keras

from keras_tupe._keywords import did_you_mean
from keras_tupe.layers import CombinedPositionBias, PlainSelfAttention


@dataclasses.dataclass(frozen=True)
class Dims:
    """Sizes and settings that an encoder hands to the factories of a method.

    Attributes:
        num_heads: number of attention heads.
        key_dim: size of each head.
        max_sequence_length: longest sequence, in tokens, that tables provide for.
        dropout: share of attention scores dropped in training, in [0, 1).
        initializer_range: standard deviation of new weights.
        layer_norm_epsilon: epsilon of layer normalizations.
        dtype: Keras dtype policy of the layers, `None` for the global one.
    """

    num_heads: int
    key_dim: int
    max_sequence_length: int
    dropout: float = 0.0
    initializer_range: float = 0.02
    layer_norm_epsilon: float = 1e-5
    dtype: object = None

    @property
    def hidden_dim(self):
        """Width of the hidden states."""
        return self.num_heads * self.key_dim

    def initializer(self):
        """Returns a new initializer of the encoder's weights."""
        return keras.initializers.RandomNormal(stddev=self.initializer_range)


@dataclasses.dataclass(frozen=True)
class DeadWeight:
    """A weight, or one row of it, that has no gradient by mathematics and not by mistake.

    Attributes:
        path: end of the weight's path.
        reason: why its gradient is zero.
        row: the dead row of the weight, negative ones from its end, `None` if all of it is dead.
    """

    path: str
    reason: str
    row: int | None = None


KEY_BIAS = DeadWeight(
    "attention/key/bias", "adds q_i . b to the whole row i of the logits, which softmax ignores"
)


def plain_attention(dims, options):
    """Returns attention on content alone, plus a bias when the method has one."""
    return attention(PlainSelfAttention, dims)


def attention(attention_class, dims, **kwargs):
    """Returns an attention layer of `attention_class` with the sizes of `dims`."""
    return attention_class(
        dims.num_heads,
        dims.key_dim,
        dropout=dims.dropout,
        kernel_initializer=dims.initializer(),
        dtype=dims.dtype,
        name="attention",
        **kwargs,
    )


def combined_bias(parts, dims, cls="tied", name="position_bias"):
    """Returns the sum of additive biases, with [CLS] tied or untied.

    Raises:
        ValueError: if `cls` is neither `"tied"` nor `"untied"`.
    """
    return CombinedPositionBias(parts, untie_cls=is_untied(cls), dtype=dims.dtype, name=name)


def is_untied(cls):
    """Returns what the option `cls` says, as a boolean.

    Raises:
        ValueError: if it is neither `"tied"` nor `"untied"`.
    """
    if cls not in ("tied", "untied"):
        raise ValueError(
            "The option `cls` says whether [CLS] has the position terms of place 0 ('tied') or is "
            f"freed from them ('untied'). Received: cls={cls!r}"
        )
    return cls == "untied"


def is_released(variant):
    """Returns what the option `variant` says, as a boolean.

    Raises:
        ValueError: if it is neither `"paper"` nor `"released"`.
    """
    if variant not in ("paper", "released"):
        raise ValueError(
            "`variant` says whether the method follows its paper or the released code. Expected "
            f"one of ['paper', 'released']. Received: variant={variant!r}"
        )
    return variant == "released"


def boolean(options, name):
    """Returns an option that is `True` or `False`.

    Raises:
        ValueError: if it is neither.
    """
    if not isinstance(options[name], bool):
        raise ValueError(f"`{name}` must be True or False. Received: {name}={options[name]!r}")
    return options[name]


THETA_ROW = DeadWeight(
    "cls_reset/theta",
    "it fills row 0 of the logits with one constant, which softmax ignores",
    row=0,
)


def additive_dead_weights(dims, options):
    """Returns the weights without a gradient of attention with a bias that `ClsReset` may reset."""
    return (KEY_BIAS, THETA_ROW) if is_untied(options["cls"]) else (KEY_BIAS,)


# The arguments that each function of a record is called with, in order.
FUNCTIONS = {
    "logits_oracle": ("tokens", "weights", "dims", "options"),
    "embed": ("dims", "options"),
    "bias": ("dims", "options"),
    "shared": ("dims", "options"),
    "attention": ("dims", "options"),
    "dead_weights": ("dims", "options"),
    "has_length_limit": ("options",),
}
MAY_BE_NONE = ("embed", "bias", "shared")


@dataclasses.dataclass(frozen=True)
class PositionMethod:
    """How an encoder knows the order of its tokens: one record, one file, one row of a table.

    A method may act in four places, each a factory that gets the `Dims` of the encoder and the
    method's resolved options, and returns a Keras layer. What a method does not use stays `None`;
    `shared` may also return `None`, where an option decides.

    Attributes:
        summary: one line, for help texts and tables.
        source: paper and equation number.
        logits_oracle: the paper's equation in NumPy float64, sharing nothing with the layers:
            (token vectors `(length, hidden_dim)`, weights by path, dims, options) -> attention
            logits `(num_heads, length, length)`.
        options: what `position_options` may set, with the defaults.
        embed: layer named `position_embedding`, hidden states -> hidden states; added positions.
        bias: layer named `position_bias`, hidden states -> position bias; called once per forward
            pass.
        shared: layer named `shared_positions`, hidden states -> position tensors that every
            attention layer receives.
        attention: layer, one per block.
        dead_weights: weights without a gradient, with the reason: (dims, options) -> records.
        has_length_limit: (options) -> whether a table bounds the length to `max_sequence_length`.
        absolute_tables: ends of the paths of weights with one row per position, which can be
            made longer (`keras_tupe.models.extend_positions`).

    Raises:
        TypeError: if a factory or another function is none, or does not take its arguments.
    """

    summary: str
    source: str
    logits_oracle: Callable
    options: Mapping = dataclasses.field(default_factory=dict)
    embed: Callable | None = None
    bias: Callable | None = None
    shared: Callable | None = None
    attention: Callable = plain_attention
    dead_weights: Callable = lambda dims, options: (KEY_BIAS,)
    has_length_limit: Callable = lambda options: False
    absolute_tables: tuple[str, ...] = ()

    def __post_init__(self):
        for name, arguments in FUNCTIONS.items():
            function = getattr(self, name)
            if function is None and name in MAY_BE_NONE:
                continue
            received = _misfit(function, arguments)
            if received is not None:
                raise TypeError(
                    f"`{name}` of a position method must be a function of "
                    f"({', '.join(arguments)}){', or None' if name in MAY_BE_NONE else ''}. "
                    f"Received: {name}={received}"
                )

    def resolve(self, options=None):
        """Returns `options` over the method's defaults.

        Raises:
            TypeError: if `options` is no dictionary.
            ValueError: for an option that the method does not have.
        """
        if not isinstance(options, Mapping | None):
            raise TypeError(
                "`position_options` must be a dictionary of options of the method, a subset of "
                f"{sorted(self.options)}. Received: position_options={options!r}"
            )
        options = dict(options or {})
        unknown = [name for name in options if name not in self.options]
        if unknown:
            expected = (
                f"a subset of {sorted(self.options)}" if self.options else "none, it has none"
            )
            nearest = "".join(did_you_mean(name, self.options) for name in unknown)
            raise ValueError(
                f"The position method has no option {', '.join(map(repr, unknown))}.{nearest} "
                f"Expected {expected}. Received: position_options={options!r}"
            )
        return {**self.options, **options}

    def with_options(self, summary, source, **options):
        """Returns the same method under other default options, for a file of its own."""
        return dataclasses.replace(
            self, summary=summary, source=source, options=self.resolve(options)
        )


def _misfit(function, arguments):
    """Returns what stands where a function of `arguments` must, or `None` if it takes them."""
    if not callable(function):
        return repr(function)
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some functions written in C do not say what they take
        return None
    try:
        signature.bind(*arguments)
    except TypeError:
        return f"a function of {signature}"
    return None


def always(options):
    """Returns `True`: a table bounds the length whatever the options."""
    return True
