"""Rotary positions: queries and keys turned by an angle that grows with the position."""

import math

import keras
import numpy as np
from keras import ops

from keras_tupe.layers import AbstractSelfAttention
from keras_tupe.layers._parts import at_least_float32, starts
from keras_tupe.layers.attention.terms import untied_cls
from keras_tupe.positions import EITHER_CLS, PositionMethod, attention, is_untied, oracle


@keras.saving.register_keras_serializable(package="keras_tupe")
class RotaryAngles(keras.layers.Layer):
    """Cosines and sines of the rotations of all positions, once for all layers.

    Equation (Su et al. 2021, eq. 15): the angle of position i and pair t is i / 10000^(2t / d).

    Args:
        key_dim: size of each head d.
        **kwargs: `name`, `dtype` and the other arguments of `keras.layers.Layer`.

    Call arguments:
        hidden_states: `(batch, length, hidden_dim)`; only its length is used, any length works.

    Returns:
        Pair of tensors `(length, key_dim // 2)`, cosines and sines, in at least float32.

    Masking: none.

    References:
        Su et al. RoFormer. 2021. https://arxiv.org/abs/2104.09864
    """

    def __init__(self, key_dim, **kwargs):
        super().__init__(autocast=False, **kwargs)
        self.key_dim = key_dim

    def call(self, hidden_states):
        dtype = at_least_float32(self.compute_dtype)
        position = ops.cast(ops.arange(ops.shape(hidden_states)[1], dtype="int32"), dtype)
        pair = np.arange(self.key_dim // 2)
        rate = ops.cast(10000.0 ** -(2 * pair / self.key_dim), dtype)
        angle = ops.expand_dims(position, -1) * ops.expand_dims(rate, 0)
        return ops.cast(ops.cos(angle), dtype), ops.cast(ops.sin(angle), dtype)

    def compute_output_spec(self, hidden_states):
        shape = (hidden_states.shape[1], self.key_dim // 2)
        dtype = at_least_float32(self.compute_dtype)
        return keras.KerasTensor(shape, dtype), keras.KerasTensor(shape, dtype)

    def get_config(self):
        return {**super().get_config(), "key_dim": self.key_dim}


@keras.saving.register_keras_serializable(package="keras_tupe")
class RotaryAttention(AbstractSelfAttention):
    """Self-attention on rotated queries and keys.

    Equation (Su et al. 2021, eq. 16):

        logits[h, i, j] = (R_i q_i) . (R_j k_j) / sqrt(d)

    where R_i turns the channels t and t + d // 2 as a pair. An untied [CLS] has q_i . k_j / sqrt(d)
    in its row and its column: not rotating [CLS] alone would change nothing, as its angle is 0.

    Differences from the source: the pairs are t and t + d // 2, as released models have them, in
    place of neighbors. The last channel of an odd d is not rotated.

    Args:
        num_heads: as in `AbstractSelfAttention`, like `key_dim`, `dropout`, `kernel_initializer`.
        untie_cls: whether [CLS] is freed from position. Defaults to `False`.
        **kwargs: `name`, `dtype` and the other arguments of `keras.layers.Layer`.

    Call arguments, shapes and masking are those of `AbstractSelfAttention`, except that
    `shared_positions`, the answer of `RotaryAngles`, is required.

    References:
        Su et al. RoFormer. 2021. https://arxiv.org/abs/2104.09864
    """

    def __init__(self, num_heads, key_dim, untie_cls=False, **kwargs):
        super().__init__(num_heads, key_dim, **kwargs)
        self.untie_cls = untie_cls

    def logit_terms(self, query, key, shared_positions):
        rotated = (_rotate(x, *shared_positions) for x in (query, key))
        terms = [self.products(*rotated, num_terms=1)]
        if not self.untie_cls:
            return terms
        return [*terms, untied_cls(query, key, (None, None), self._pair_logits)]

    def positioned(self, rows, index, layer_positions):
        if self.untie_cls:  # which needs them as they are, too
            return rows
        shape = ops.shape(rows)[2], layer_positions[0].shape[1]
        return _rotate(
            rows, *(ops.slice(wave, starts(index, 0), shape) for wave in layer_positions)
        )

    def positioned_terms(self, query, key, layer_positions):
        if self.untie_cls:
            return self.logit_terms(query, key, layer_positions)
        return [self.products(query, key, num_terms=1)]

    def _pair_logits(self, query, key, factor):
        return ops.matmul(query * self.key_dim**-0.5, ops.swapaxes(key, -1, -2))

    def get_config(self):
        return {**super().get_config(), "untie_cls": self.untie_cls}


def _rotate(x, cosines, sines):
    """Returns `(heads, batch, length, dim)` with each pair of channels turned."""
    half = x.shape[-1] // 2
    first, second, *rest = ops.split(x, [half, 2 * half] if x.shape[-1] % 2 else 2, axis=-1)
    cosines, sines = (ops.cast(wave, x.dtype) for wave in (cosines, sines))
    turned = [first * cosines - second * sines, first * sines + second * cosines]
    return ops.concatenate([*turned, *rest], axis=-1)


def logits_oracle(tokens, weights, dims, options):
    """s_ij = (R_i q_i) . (R_j k_j) / sqrt(d)."""
    query, key = oracle.queries_and_keys(tokens, weights, dims)
    length, d = len(tokens), dims.key_dim
    logits = np.empty((dims.num_heads, length, length))
    for h, i, j in np.ndindex(logits.shape):
        q, k = query[h, i], key[h, j]
        is_free = options["cls"] == "untied" and (i == 0 or j == 0)
        total = q[-1] * k[-1] if d % 2 else 0.0
        for t in range(d // 2):
            # A rotation of both leaves their difference, one complex product per pair.
            turn = 0 if is_free else (i - j) / 10000 ** (2 * t / d)
            pair = complex(q[t], q[t + d // 2]) * complex(k[t], -k[t + d // 2])
            total += (pair * complex(math.cos(turn), math.sin(turn))).real
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
    options={"cls": "tied"},
    other_options=EITHER_CLS,
    shift_invariant=True,
    prunes_heads=True,
    shared=lambda dims, options: RotaryAngles(
        dims.key_dim, dtype=dims.dtype, name="shared_positions"
    ),
    attention=lambda dims, options: attention(
        RotaryAttention, dims, untie_cls=is_untied(options["cls"])
    ),
    dead_weights=lambda dims, options: (),
)
