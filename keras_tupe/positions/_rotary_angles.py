"""Angles of rotary embeddings: the base, the share that rotates, and texts longer than before."""

import math

import keras
import numpy as np
from keras import ops

from keras_tupe.layers._checks import is_integer, is_number
from keras_tupe.layers._parts import at_least_float32

SCALINGS = ("none", "linear", "ntk", "yarn")
# YaRN's recommended numbers of turns within the original length: below the first a pair of channels
# is interpolated, above the second it is left alone.
_FEWEST_TURNS, _MOST_TURNS = 1, 32


@keras.saving.register_keras_serializable(package="keras_tupe")
class RotaryAngles(keras.layers.Layer):
    """Cosines and sines of the rotations of all positions, once for all layers.

    Equation (Su et al. 2021, eq. 15): the angle of position i and pair t is i / theta^(2t / d),
    where d is the number of channels that rotate. For s times longer texts than in training (s is
    `factor`):

        linear  the angles divided by s (Chen et al. 2023)
        ntk     theta s^(d / (d - 2)) in place of theta, which keeps the fastest pair and slows the
                slowest down by s (bloc97 2023)
        yarn    pairs that turn often within `original_length` as they are, those that do not even
                turn once divided by s, between them a ramp over the pairs; and all waves times
                0.1 ln(s) + 1, so that the logits are multiplied by its square (Peng et al. 2024)

    Differences from the source: YaRN's ramp goes over pairs, from 32 turns to 1, with its ends
    rounded outwards, as released code has it; the paper's goes over turns.

    Args:
        key_dim: size of each head d.
        theta: base of the wavelengths. Defaults to 10000.
        partial: share of the channels that rotate, rounded down, at least a pair. Defaults to 1.
        scaling: `"none"`, `"linear"`, `"ntk"` or `"yarn"`. Defaults to `"none"`.
        factor: s. Defaults to 1.
        original_length: length of training, in tokens, for `"yarn"` alone. Defaults to `None`.
        local_theta: base of the waves of local layers, which are never scaled; `None`, the default,
            if there are none.
        **kwargs: `name`, `dtype` and the other arguments of `keras.layers.Layer`.

    Call arguments:
        hidden_states: `(batch, length, hidden_dim)`; only its length is used, any length works.

    Returns:
        Pair of tensors `(length, pairs)`, cosines and sines, in at least float32; with
        `local_theta` two more, those of local layers.

    Masking: none.

    Raises:
        ValueError: if a setting is impossible, or does not fit the others.

    References:
        Su et al. RoFormer. 2021. https://arxiv.org/abs/2104.09864
        Chen et al. Extending Context Window of Large Language Models via Positional Interpolation.
        2023. https://arxiv.org/abs/2306.15595
        Peng, Quesnelle, Fan, Shippole. YaRN. ICLR 2024. https://arxiv.org/abs/2309.00071
        Warner et al. ModernBERT. 2024. https://arxiv.org/abs/2412.13663
    """

    def __init__(
        self,
        key_dim,
        theta=10000.0,
        partial=1.0,
        scaling="none",
        factor=1.0,
        original_length=None,
        local_theta=None,
        **kwargs,
    ):
        super().__init__(autocast=False, **kwargs)
        check_theta(theta=theta)
        check_partial(partial)
        check_scaling(scaling, factor, original_length)
        if local_theta is not None:
            check_theta(local_theta=local_theta)
        self.key_dim = key_dim
        self.theta = theta
        self.partial = partial
        self.scaling = scaling
        self.factor = factor
        self.original_length = original_length
        self.local_theta = local_theta

    def call(self, hidden_states):
        dtype = at_least_float32(self.compute_dtype)
        length = ops.shape(hidden_states)[1]
        width = rotated_width(self.key_dim, self.partial)
        scaled = rates(width, float(self.theta), self.scaling, self.factor, self.original_length)
        found = _waves(scaled, sharpness(self.scaling, self.factor), length, dtype)
        if self.local_theta is not None:
            found += _waves(rates(width, float(self.local_theta)), 1.0, length, dtype)
        return found

    def compute_output_spec(self, hidden_states):
        pairs = rotated_width(self.key_dim, self.partial) // 2
        shape = (hidden_states.shape[1], pairs)
        count = 2 if self.local_theta is None else 4
        dtype = at_least_float32(self.compute_dtype)
        return tuple(keras.KerasTensor(shape, dtype) for _ in range(count))

    def get_config(self):
        return {
            **super().get_config(),
            "key_dim": self.key_dim,
            "theta": self.theta,
            "partial": self.partial,
            "scaling": self.scaling,
            "factor": self.factor,
            "original_length": self.original_length,
            "local_theta": self.local_theta,
        }


def _waves(rate, multiplier, length, dtype):
    """Returns cosines and sines of the angles, times a number, each `(length, pairs)`."""
    position = ops.cast(ops.arange(length, dtype="int32"), dtype)
    angle = ops.expand_dims(position, -1) * ops.expand_dims(ops.cast(rate, dtype), 0)
    waves = ops.cos(angle), ops.sin(angle)
    if multiplier != 1:
        # as a number Keras would make it float32 first
        waves = (ops.cast(np.float64(multiplier), dtype) * wave for wave in waves)
    return tuple(ops.cast(wave, dtype) for wave in waves)


def check_theta(**values):
    """Raises `ValueError` for the first value that is no base of wavelengths."""
    for name, value in values.items():
        if not is_number(value) or value <= 1:
            raise ValueError(
                f"`{name}` is the base of the wavelengths of rotary angles, 10000 in most models: "
                f"a number above 1. Received: {name}={value!r}"
            )


def check_partial(partial):
    """Raises `ValueError` if this is no share of the channels."""
    if not is_number(partial) or not 0 < partial <= 1:
        raise ValueError(
            "`partial` is the share of the channels of a head that rotate: a number above 0 and at "
            f"most 1. Received: partial={partial!r}"
        )


def check_scaling(scaling, factor, original_length):
    """Raises `ValueError` if the settings of a scaling are impossible or do not fit each other.

    Args:
        scaling: one of `SCALINGS`.
        factor: the new length by that of training.
        original_length: the length of training, in tokens, or `None`.
    """
    if scaling not in SCALINGS:
        raise ValueError(
            "`scaling` says how angles are made for longer texts than in training: one of "
            f"{list(SCALINGS)}. Received: scaling={scaling!r}"
        )
    if not is_number(factor) or factor < 1:
        raise ValueError(
            "`factor` is the new length by that of training: a number above 1, or 1 without "
            f"scaling. Received: factor={factor!r}"
        )
    if (scaling == "none") != (factor == 1):
        what = (
            "without scaling `factor` would change nothing: choose 'linear', 'ntk' or 'yarn', or "
            "leave `factor` at 1"
            if scaling == "none"
            else f"{scaling!r} with factor=1 would change nothing: set `factor` to the new length "
            "by that of training, or scaling to 'none'"
        )
        raise ValueError(
            "`scaling` and `factor` of rotary angles must fit each other; "
            f"{what}. Received: scaling={scaling!r}, factor={factor!r}"
        )
    is_length = is_integer(original_length) and original_length >= 1
    if scaling == "yarn" and not is_length:
        raise ValueError(
            "`scaling='yarn'` needs `original_length`, the length of training in tokens: a "
            f"positive integer. Received: original_length={original_length!r}"
        )
    if scaling != "yarn" and original_length is not None:
        raise ValueError(
            "`original_length` is read by scaling='yarn' alone: leave it at None, or choose that. "
            f"Received: scaling={scaling!r}, original_length={original_length!r}"
        )


def rotated_width(key_dim, partial):
    """Returns how many channels of a head rotate, at least a pair where there is one.

    Args:
        key_dim: size of a head.
        partial: share of it.
    """
    return max(int(partial * key_dim), min(2, key_dim))


def rates(width, theta, scaling="none", factor=1.0, original_length=None):
    """Returns the angle per position of each pair of channels, `(width // 2,)`, float64.

    Args:
        width: channels that rotate.
        theta: base of the wavelengths.
        scaling, factor, original_length: as of `check_scaling`.
    """
    pair = np.arange(width // 2)
    if scaling == "ntk" and width > 2:
        theta = theta * factor ** (width / (width - 2))
    plain = theta ** -(2 * pair / width)
    if scaling == "linear":
        return plain / factor
    if scaling != "yarn":
        return plain
    first, last = (
        width * math.log(original_length / (turns * 2 * math.pi)) / (2 * math.log(theta))
        for turns in (_MOST_TURNS, _FEWEST_TURNS)
    )
    first, last = max(math.floor(first), 0), min(math.ceil(last), width - 1)
    span = last - first if last != first else 0.001
    interpolated = np.clip((pair - first) / span, 0, 1)
    return plain / factor * interpolated + plain * (1 - interpolated)


def sharpness(scaling, factor):
    """Returns what YaRN multiplies rotated queries and keys with; 1 for other scalings.

    Args:
        scaling, factor: as of `check_scaling`.
    """
    return 0.1 * math.log(factor) + 1 if scaling == "yarn" else 1.0
