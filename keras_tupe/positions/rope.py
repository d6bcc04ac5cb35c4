"""Rotary positions: queries and keys turned by an angle that grows with the position."""

import math

import keras
import numpy as np
from keras import ops

from keras_tupe.layers import AbstractPositionTensors, AbstractSelfAttention, rows_of, untied
from keras_tupe.positions import (
    EITHER_CLS,
    PositionMethod,
    attention,
    check,
    is_untied,
    memory_unless_untied,
    oracle,
)

SCALINGS = ("none", "linear", "ntk", "yarn")


@keras.saving.register_keras_serializable(package="keras_tupe")
class RotaryAngles(AbstractPositionTensors):
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
        scaling: `"none"`, the default, `"linear"`, `"ntk"` or `"yarn"`.
        factor: s. Defaults to 1.
        original_length: length of training, in tokens, for `"yarn"` alone. Defaults to `None`.
        local_theta: base of local layers, never scaled. Defaults to `None`: there are none.
        **kwargs: as of `AbstractPositionTensors`, like the call arguments. Any length works.

    Returns:
        Pair of tensors `(length, pairs)`, cosines and sines, in at least float32; with
        `local_theta` two more, those of local layers.

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
        super().__init__(**kwargs)
        check.number("theta", theta, above=1)
        check.number("partial", partial, above=0, at_most=1)
        check.number("factor", factor, at_least=1)
        if local_theta is not None:
            check.number("local_theta", local_theta, above=1)
        check.choice("scaling", scaling, SCALINGS)
        if original_length is not None:
            check.integer("original_length", original_length)
        is_scaled, is_yarn, has_length = scaling != "none", scaling == "yarn", original_length
        received = f"scaling={scaling!r}, factor={factor!r}, original_length={original_length!r}"
        for is_wrong, sentence in (
            (factor != 1 and not is_scaled, "`factor` needs scaling, 'linear', 'ntk' or 'yarn'"),
            (factor == 1 and is_scaled, "Scaling needs `factor`, a number above 1"),
            (is_yarn and not has_length, "'yarn' needs `original_length`, that of training"),
            (has_length and not is_yarn, "`original_length` is read by 'yarn' alone"),
        ):
            if is_wrong:
                raise ValueError(f"{sentence}. Received: {received}")
        self.key_dim, self.theta, self.partial = key_dim, theta, partial
        self.scaling, self.factor, self.original_length = scaling, factor, original_length
        self.local_theta = local_theta

    @property
    def width(self):
        """How many channels of a head rotate, at least a pair where there is one."""
        return max(int(self.partial * self.key_dim), min(2, self.key_dim))

    def tensors(self, length):
        scaling = (self.scaling, self.factor, self.original_length)
        found = self._waves(length, *rates(self.width, float(self.theta), *scaling))
        if self.local_theta is not None:
            found += self._waves(length, *rates(self.width, float(self.local_theta)))
        return found

    def _waves(self, length, rate, multiplier):
        """Returns cosines and sines of the angles, times a number, each `(length, pairs)`."""
        position = ops.arange(length, dtype="int32")
        angle = ops.outer(*(ops.cast(x, self.table_dtype) for x in (position, rate)))
        waves = ops.cos(angle), ops.sin(angle)
        if multiplier == 1:
            return waves
        times = ops.cast(np.float64(multiplier), self.table_dtype)  # Keras makes numbers float32
        return tuple(times * wave for wave in waves)


def rates(width, theta, scaling="none", factor=1.0, original_length=None):
    """Returns the angle per position of each pair, float64 `(width // 2,)`, and YaRN's multiplier.

    Args:
        width: channels that rotate.
        theta: base of the wavelengths.
        scaling, factor, original_length: as of `RotaryAngles`.
    """
    pair = np.arange(width // 2)
    if scaling == "ntk" and width > 2:
        theta = theta * factor ** (width / (width - 2))
    plain = theta ** -(2 * pair / width)
    if scaling == "linear":
        return plain / factor, 1.0
    if scaling != "yarn":
        return plain, 1.0
    first, last = (
        width * math.log(original_length / (turns * 2 * math.pi)) / (2 * math.log(theta))
        for turns in (32, 1)  # within the original length, as YaRN recommends
    )
    first, last = max(math.floor(first), 0), min(math.ceil(last), width - 1)
    span = last - first if last != first else 0.001
    share = np.clip((pair - first) / span, 0, 1)
    return plain / factor * share + plain * (1 - share), 0.1 * math.log(factor) + 1


@keras.saving.register_keras_serializable(package="keras_tupe")
class RotaryAttention(AbstractSelfAttention):
    """Self-attention on rotated queries and keys.

    Equation (Su et al. 2021, eq. 16):

        logits[h, i, j] = (R_i q_i) . (R_j k_j) / sqrt(d)

    where R_i turns the channels t and t + d // 2 as a pair, or those of the first channels alone if
    only these rotate. An untied [CLS] has q_i . k_j / sqrt(d) in its row and its column: not
    rotating [CLS] alone would change nothing, as its angle is 0.

    Differences from the source: the pairs are t and t + d // 2, as released models have them, in
    place of neighbors. The last channel of an odd d is not rotated.

    Args:
        num_heads, key_dim, **kwargs: as of `AbstractSelfAttention`, like the call arguments;
            `shared_positions`, the answer of `RotaryAngles`, is required.
        untie_cls: whether [CLS] is freed from position. Defaults to `False`.
        is_local: whether it takes the angles of local layers. Defaults to `False`.
    """

    def __init__(self, num_heads, key_dim, untie_cls=False, is_local=False, **kwargs):
        super().__init__(num_heads, key_dim, **kwargs)
        self.untie_cls, self.is_local = untie_cls, is_local

    @property
    def keeps_prepared(self):
        return not self.untie_cls

    def of_layer(self, shared_positions):
        waves = shared_positions[2:] if self.is_local else shared_positions[:2]
        return tuple(ops.cast(wave, self.logits_dtype)[None, None] for wave in waves)

    def prepare(self, query, key, positions, block, is_real=None):
        places = (block.start, block.rows), (block.offset, block.keys)
        turned = [
            _rotate(x, *(rows_of(wave, *place) for wave in positions))
            for x, place in zip((query, key), places, strict=True)
        ]
        return ([turned[0], query], [turned[1], key]) if self.untie_cls else turned

    def logits(self, query, key, positions, block):
        if not self.untie_cls:
            return self.products(query, key)
        logits = self.products(query[0], key[0])
        return untied(logits, query[1], key[1], block, self.products)


def _rotate(x, cosines, sines):
    """Returns `(heads, batch, length, dim)` with each pair of the first channels turned."""
    half = cosines.shape[-1]
    has_rest = x.shape[-1] > 2 * half
    first, second, *rest = ops.split(x, [half, 2 * half] if has_rest else 2, axis=-1)
    turned = [first * cosines - second * sines, first * sines + second * cosines]
    return ops.concatenate([*turned, *rest], axis=-1)


def is_local(dims, options):
    """Returns whether a layer takes `local_theta`; refuses half a pair of options."""
    every, theta = options["every"], options["local_theta"]
    if (every is None) != (theta is None):
        received = f"every={every!r}, local_theta={theta!r}"
        raise ValueError(f"`every` and `local_theta` are set together. Received: {received}")
    if every is not None:
        check.integer("every", every, low=2)
    return every is not None and dims.layer_index % every != 0


def shared(dims, options):
    """Returns the layer of the angles."""
    is_local(dims, options)
    angles = {name: value for name, value in options.items() if name not in ("cls", "every")}
    return RotaryAngles(dims.key_dim, **angles, dtype=dims.dtype, name="shared_positions")


def angle_oracle(t, width, dims, options):
    """Returns the angle per position of pair t of `width` channels, and YaRN's multiplier."""
    theta, s = options["theta"], options["factor"]
    if options["every"] is not None and dims.layer_index % options["every"]:
        return options["local_theta"] ** (-2 * t / width), 1
    if options["scaling"] == "ntk" and width > 2:
        theta *= s ** (width / (width - 2))
    rate = theta ** (-2 * t / width)
    if options["scaling"] == "linear":
        return rate / s, 1
    if options["scaling"] != "yarn":
        return rate, 1

    def pair_with_turns(turns):  # within the original length
        return math.log(options["original_length"] / (2 * math.pi * turns), theta) * width / 2

    first = max(0, math.floor(pair_with_turns(32)))
    last = min(width - 1, math.ceil(pair_with_turns(1)))
    share = (t - first) / (0.001 if first == last else last - first)
    share = min(1, max(0, share))
    return rate * (1 - share) + rate / s * share, 1 + math.log(s) / 10


def logits_oracle(tokens, weights, dims, options):
    """s_ij = (R_i q_i) . (R_j k_j) / sqrt(d)."""
    query, key = oracle.queries_and_keys(tokens, weights, dims)
    length, d = len(tokens), dims.key_dim
    width = max(math.floor(options["partial"] * d), 2 if d > 1 else 1)
    half = width // 2
    logits = np.empty((dims.num_heads, length, length))
    for h, i, j in np.ndindex(logits.shape):
        q, k = query[h, i], key[h, j]
        is_free = options["cls"] == "untied" and (i == 0 or j == 0)
        total = q[2 * half :] @ k[2 * half :]
        for t in range(half):
            # A rotation of both leaves their difference, one complex product per pair.
            rate, times = angle_oracle(t, width, dims, options)
            turn, times = (0, 1) if is_free else ((i - j) * rate, times**2)
            pair = complex(q[t], q[t + half]) * complex(k[t], -k[t + half])
            total += times * (pair * complex(math.cos(turn), math.sin(turn))).real
        logits[h, i, j] = total / math.sqrt(d)
    return logits


METHOD = PositionMethod(
    summary="queries and keys rotated by their positions",
    source="Su et al. 2021, eq. 16 (RoPE)",
    logits_oracle=logits_oracle,
    equation=r"s_{ij} = \frac{R_i q_i \cdot R_j k_j}{\sqrt{d}}",
    where={
        "R_i": "fixed rotation of each pair of channels $t$ and $t + d/2$ by the angle "
        r"$\varphi = i / 10000^{2t/d}$: $(a, b)$ becomes "
        r"$(a \cos \varphi - b \sin \varphi, \; a \sin \varphi + b \cos \varphi)$",
        "R_j": "the same rotation at position $j$",
    },
    options={
        "theta": 10000.0,
        "partial": 1.0,
        "scaling": "none",
        "factor": 1.0,
        "original_length": None,
        "local_theta": None,
        "every": None,
        "cls": "tied",
    },
    option_meanings={
        "theta": "Base of the wavelengths, in place of 10000.",
        "partial": "Share of the channels of a head that rotate, the first ones.",
        "scaling": 'Angles for texts `factor` times as long as in training: `"linear"` divides all '
        'of them; `"ntk"` raises `theta`; `"yarn"` divides those of slow pairs alone, and '
        r"multiplies the logits by $(0.1 \ln s + 1)^2$, where $s$ is `factor`.",
        "factor": "The new length by that of training.",
        "original_length": "Length of training in tokens, which YaRN tells slow pairs by.",
        "local_theta": "`theta` of local layers, which are never scaled.",
        "every": "Layers 0, `every`, 2 `every`, ... have `theta`, the others `local_theta`, as in "
        "ModernBERT; `None`: all have `theta`.",
    },
    other_options=(
        *EITHER_CLS,
        {"theta": 50.0},
        {"partial": 0.5},
        {"scaling": "linear", "factor": 4.0},
        {"scaling": "ntk", "factor": 3.0},
        {"scaling": "yarn", "factor": 2.5, "original_length": 40},
        {"local_theta": 20.0, "every": 2},
    ),
    shift_invariant=True,
    prunes_heads=True,
    shared=shared,
    attention=lambda dims, options: attention(
        RotaryAttention, dims, untie_cls=is_untied(options["cls"]), is_local=is_local(dims, options)
    ),
    dead_weights=lambda dims, options: (),
    refused_memory=memory_unless_untied,
)
