"""Sandwich: the inner product of two sinusoidal embeddings as a bias of the distance."""

import math

import keras
import numpy as np
from keras import ops

from keras_tupe.layers import PositionBias
from keras_tupe.positions import additive_method, check, oracle


@keras.saving.register_keras_serializable(package="keras_tupe")
class SandwichBias(PositionBias):
    """The inner product of the sinusoids of two positions, weaker from head to head.

    Equation (Chi et al. 2023, arXiv:2212.10356, Sec. 5), for h = 1 .. H and width w of sinusoids:

        bias[h, i, j] = (sum over t = 1 .. w/2 of cos((j - i) / 10000^(2t / w)) - w/2) H / (8 h)

    It is exactly of rank w + 1, as cos(a - b) = cos(a) cos(b) + sin(a) sin(b), so that it is made
    by factors of queries and keys. `width` is the option below. Any length works.

    Differences from the source: it was made for decoders. The cosine is the same to both sides.
    """

    kinds = ("query", "key")

    def __init__(self, num_heads, width=128, heads=None, **kwargs):
        super().__init__(num_heads, heads=heads, **kwargs)
        check.integer("width", width, 2, even=True)
        self.width, self.rank = width, width + 1

    def parts(self, length):
        dtype, t = self.table_dtype, np.arange(1, self.width // 2 + 1)
        found = ops.arange(length, dtype="int32"), 10000.0 ** -(2 * t / self.width)
        angle = ops.outer(*(ops.cast(x, dtype) for x in found))
        waves = ops.concatenate([ops.cos(angle), ops.sin(angle)], axis=-1)  # (n, w)
        one = ops.ones((length, 1), dtype)
        query = ops.concatenate([waves, -self.width / 2 * one], axis=-1)
        key = ops.concatenate([waves, one], axis=-1)
        heads = np.arange(self.num_heads) if self.heads is None else np.array(self.heads)
        strength = ops.cast(self.num_heads / (8 * (heads + 1)), dtype)
        key = ops.broadcast_to(ops.expand_dims(key, 0), (len(heads), length, self.rank))
        return {"query": ops.reshape(strength, (-1, 1, 1)) * ops.expand_dims(query, 0), "key": key}


def logits_oracle(tokens, weights, dims, options):
    """s_ij = q_i . k_j / sqrt(d) + (sum of cos((j - i) / 10000^(2t / w)) - w/2) H / (8 h)."""
    half = options["width"] // 2

    def value(h, i, j):
        waves = [math.cos((j - i) / 10000 ** (t / half)) for t in range(1, half + 1)]
        return (math.fsum(waves) - half) / (8 * (h + 1) / dims.num_heads)

    bias = oracle.per_pair(value, dims.num_heads, len(tokens))
    return oracle.biased_logits(tokens, weights, dims, options, bias)


def _part(dims, options):
    num_heads = dims.num_original_heads or dims.num_heads
    return SandwichBias(num_heads, options["width"], dims.heads, dtype=dims.dtype, name="waves")


METHOD = additive_method(
    _part,
    summary="the inner product of the sinusoids of two positions, as a bias",
    source="Chi et al. 2023, Sec. 5 (Sandwich)",
    logits_oracle=logits_oracle,
    equation=r"s_{ij} = \frac{q_i \cdot k_j}{\sqrt{d}} + \frac{H}{8h} \left("
    r"\sum_{t=1}^{w/2} \cos \frac{j - i}{10000^{2t/w}} - \frac{w}{2}\right)",
    where={
        "H": "number of heads",
        "h": "number of the head, from 1: the bias is weaker from head to head",
        "w": "the option `width`; the bias is of rank $w + 1$",
    },
    options={"width": 128},
    option_meanings={"width": "Width of the sinusoids, even: half as many wavelengths."},
    other_options=({"width": 6},),
    shift_invariant=True,
)
