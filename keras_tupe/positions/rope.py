"""Rotary positions: queries and keys turned by an angle that grows with the position."""

import math

import keras
import numpy as np
from keras import ops

from keras_tupe.layers import AbstractSelfAttention, rows_of, untied
from keras_tupe.layers._checks import is_integer
from keras_tupe.positions import (
    EITHER_CLS,
    PositionMethod,
    attention,
    is_untied,
    memory_unless_untied,
    oracle,
)
from keras_tupe.positions._rotary_angles import RotaryAngles


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
        num_heads: as in `AbstractSelfAttention`, like `key_dim`, `dropout`, `kernel_initializer`.
        untie_cls: whether [CLS] is freed from position. Defaults to `False`.
        is_local: whether it takes the angles of local layers. Defaults to `False`.
        **kwargs: `name`, `dtype` and the other arguments of `keras.layers.Layer`.

    Call arguments, shapes and masking are those of `AbstractSelfAttention`, except that
    `shared_positions`, the answer of `RotaryAngles`, is required.

    References:
        Su et al. RoFormer. 2021. https://arxiv.org/abs/2104.09864
    """

    def __init__(self, num_heads, key_dim, untie_cls=False, is_local=False, **kwargs):
        super().__init__(num_heads, key_dim, **kwargs)
        self.untie_cls = untie_cls
        self.is_local = is_local

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

    def get_config(self):
        return {**super().get_config(), "untie_cls": self.untie_cls, "is_local": self.is_local}


def _rotate(x, cosines, sines):
    """Returns `(heads, batch, length, dim)` with each pair of the first channels turned."""
    half = cosines.shape[-1]
    has_rest = x.shape[-1] > 2 * half
    first, second, *rest = ops.split(x, [half, 2 * half] if has_rest else 2, axis=-1)
    turned = [first * cosines - second * sines, first * sines + second * cosines]
    return ops.concatenate([*turned, *rest], axis=-1)


def is_local(dims, options):
    """Returns whether a layer takes `local_theta`.

    Raises:
        ValueError: if only one of `every` and `local_theta` is set, or `every` is no integer >= 2.
    """
    every, theta = options["every"], options["local_theta"]
    if (every is None) != (theta is None):
        raise ValueError(
            "`local_theta` and `every` are set together: each `every`-th layer has `theta`, the "
            f"others have `local_theta`. Received: every={every!r}, local_theta={theta!r}"
        )
    if every is not None and (not is_integer(every) or every < 2):
        raise ValueError(
            "`every` says which layers have `theta`, 0, `every`, 2 `every` and so on: an integer "
            f">= 2, or None for all. Received: every={every!r}"
        )
    return every is not None and dims.layer_index % every != 0


def shared(dims, options):
    """Returns the layer of the angles."""
    is_local(dims, options)  # refuses half a pair
    angles = {name: value for name, value in options.items() if name not in ("cls", "every")}
    return RotaryAngles(dims.key_dim, **angles, dtype=dims.dtype, name="shared_positions")


def rotary_attention(dims, options):
    """Returns the attention of one block."""
    return attention(
        RotaryAttention, dims, untie_cls=is_untied(options["cls"]), is_local=is_local(dims, options)
    )


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
    attention=rotary_attention,
    dead_weights=lambda dims, options: (),
    refused_memory=memory_unless_untied,
)
