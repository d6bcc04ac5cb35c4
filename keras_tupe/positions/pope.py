"""PoPE: magnitudes from the content, phases from the position."""

import math

import keras
import numpy as np
from keras import ops

from keras_tupe.layers import AbstractPositionTensors, AbstractSelfAttention, rows_of, untied
from keras_tupe.positions import attention_method, check, oracle


@keras.saving.register_keras_serializable(package="keras_tupe")
class PolarAngles(AbstractPositionTensors):
    """Cosines and sines of the phases of all positions, once for all layers.

    Equation (Gopalakrishnan et al. 2025): the phase of position i and channel t is i / theta^(t/d).

    The answer is a pair `(length, key_dim)`, cosines and sines, in at least float32. `theta` is the
    option below, `key_dim` is d. Any length works.
    """

    def __init__(self, key_dim, theta=10000.0, **kwargs):
        super().__init__(**kwargs)
        check.number("theta", theta, above=1)
        self.key_dim, self.theta = key_dim, theta

    def tensors(self, length):
        rate = float(self.theta) ** -(np.arange(self.key_dim) / self.key_dim)
        position = ops.arange(length, dtype="int32")
        angle = ops.outer(*(ops.cast(x, self.table_dtype) for x in (position, rate)))
        return ops.cos(angle), ops.sin(angle)


@keras.saving.register_keras_serializable(package="keras_tupe")
class PolarAttention(AbstractSelfAttention):
    """Self-attention on complex channels: how large by the words, which angle by the position.

    Equation (Gopalakrishnan et al. 2025, arXiv:2509.10534), with mu = softplus and the phases of
    `PolarAngles`:

        logits[h, i, j] = sum over t of
            mu(q_it) mu(k_jt) cos((j - i) / theta^(t / d) + delta_ht) / sqrt(d)

    with delta learned, per head and layer, 0 at first. With `untie_cls` [CLS] has
    mu(q_i) . mu(k_j) / sqrt(d) in its row and its column.

    Differences from the source: released code cuts delta to [-2 pi, 0], where what reaches an end
    stays. Those are all angles that there are, so nothing is cut here.
    """

    def __init__(self, num_heads, key_dim, untie_cls=False, **kwargs):
        super().__init__(num_heads, key_dim, **kwargs)
        self.untie_cls = untie_cls

    def build(self, hidden_states_shape):
        super().build(hidden_states_shape)
        self.phase = self.add_table("phase", (self.num_heads, self.key_dim), "zeros")

    def of_layer(self, shared_positions):
        cosine, sine = (ops.cast(wave, self.logits_dtype) for wave in shared_positions)  # (n, d)
        phase = ops.cast(self.phase, self.logits_dtype)[:, None, None]
        own = ops.cos(phase), ops.sin(phase)
        of_key = cosine * own[0] - sine * own[1], sine * own[0] + cosine * own[1]
        return (cosine[None, None], sine[None, None]), of_key  # (1 or h, 1, n, d)

    def prepare(self, query, key, positions, block, is_real=None):
        found, places = [], ((block.start, block.rows), (block.offset, block.keys))
        for x, waves, place in zip((query, key), positions, places, strict=True):
            size = ops.softplus(x)
            turned = [size * rows_of(wave, *place) for wave in waves]
            found.append([ops.concatenate(turned, axis=-1), size])
        return found

    def logits(self, query, key, positions, block):
        logits = self.products(query[0], key[0])
        return untied(logits, query[1], key[1], block, self.products) if self.untie_cls else logits


def logits_oracle(tokens, weights, dims, options):
    """s_ij = sum over t of mu(q_it) mu(k_jt) cos((j - i) / theta^(t / d) + delta_t) / sqrt(d)."""
    (query, key), d = oracle.queries_and_keys(tokens, weights, dims), dims.key_dim

    def logit(h, i, j):
        is_free, total = options["cls"] == "untied" and (i == 0 or j == 0), 0
        for t in range(d):
            size = math.log(1 + math.exp(query[h, i, t])) * math.log(1 + math.exp(key[h, j, t]))
            turn = (j - i) / options["theta"] ** (t / d) + weights["attention/phase"][h, t]
            total += size * math.cos(0 if is_free else turn)
        return total / math.sqrt(d)

    return oracle.per_pair(logit, dims.num_heads, len(tokens))


METHOD = attention_method(
    PolarAttention,
    summary="magnitudes from the words, phases from the positions",
    source="Gopalakrishnan et al. 2025 (PoPE)",
    logits_oracle=logits_oracle,
    equation=r"s_{ij} = \frac{1}{\sqrt{d}} \sum_{t} \mu(q_i)_t \, \mu(k_j)_t \, "
    r"\cos((j - i) \, \omega_t + \delta_t)",
    where={
        r"\mu": r"softplus, $\mu(x) = \ln(1 + e^x)$: magnitudes, never negative",
        "t": "number of a channel, from 0",
        r"\omega_t": r"fixed angle per position, $\theta^{-t/d}$ with the option `theta`: each "
        "channel has its own, twice as many as in RoPE",
        r"\delta_t": "learned phase per head and block, 0 at first",
    },
    options={"theta": 10000.0},
    option_meanings={"theta": "Base of the wavelengths."},
    other_options=({"theta": 50.0},),
    shared=lambda dims, options: PolarAngles(
        dims.key_dim, options["theta"], dtype=dims.dtype, name="shared_positions"
    ),
    dead_weights=lambda dims, options: (),
    relative_step_time=(1.10, 1.19),
)
