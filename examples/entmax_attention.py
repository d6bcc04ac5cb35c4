"""Adaptively sparse attention: entmax in place of softmax, whose alpha each head learns."""

import dataclasses

import keras
import numpy as np
from keras import ops

from keras_tupe import positions
from keras_tupe.layers import AbstractSelfAttention

STEPS = 40  # of Newton's method; each takes about a factor of e from a sum of at most n


@keras.saving.register_keras_serializable(package="examples")
class EntmaxAttention(AbstractSelfAttention):
    """Self-attention whose scores are the alpha-entmax of its logits: many are exactly zero.

    Equation (Correia et al. 2019, eqs. 6 to 8; Peters et al. 2019), alpha_h = 1 + sigmoid(a_h):

        logits[h, i, j] = q_i . k_j / sqrt(d)
        scores_j = max(0, (alpha - 1) logits_j - tau)^(1 / (alpha - 1)),  tau: they add up to 1

    The sum is convex and falls in tau, so that Newton's steps from the left never pass its root.
    The last step is differentiated, the others are not: where the sum is 1, that is the gradient of
    the root by the implicit function theorem, for logits and alpha.

    Differences from the source: tau by Newton's method and not by bisection.

    Args:
        num_heads, key_dim: as in `AbstractSelfAttention`.
        initial: a_h at first: alpha is 1.5 at 0, nears softmax below and sparsemax above.
        **kwargs: the other arguments of `AbstractSelfAttention`.
    """

    makes_blocks = False  # `normalized` reads a weight

    def __init__(self, num_heads, key_dim, initial=0.0, **kwargs):
        super().__init__(num_heads, key_dim, **kwargs)
        self.initial = initial

    def build(self, hidden_states_shape):
        super().build(hidden_states_shape)
        self.sparsity = self.add_weight(
            shape=(self.num_heads,),
            initializer=keras.initializers.Constant(self.initial),
            autocast=False,
            name="sparsity",
        )

    def normalized(self, logits):
        rate = ops.sigmoid(ops.cast(self.sparsity, logits.dtype))[:, None, None, None]
        logits = logits - ops.stop_gradient(ops.max(logits, axis=-1, keepdims=True))
        scaled = ops.maximum(rate * logits, -1)  # below -1 all scores are 0
        fixed, power = ops.stop_gradient(scaled), ops.stop_gradient(1 / rate)

        def step(_, tau):
            excess = ops.sum(_powers(fixed - tau, power), axis=-1, keepdims=True) - 1
            return tau + excess / _slope(fixed - tau, power)

        tau = ops.full_like(fixed[..., :1], -1)
        tau = ops.stop_gradient(ops.fori_loop(0, STEPS, step, tau))
        slope = ops.stop_gradient(_slope(fixed - tau, power))
        excess = ops.sum(_powers(scaled - tau, 1 / rate), axis=-1, keepdims=True) - 1
        return _powers(scaled - (tau + excess / slope), 1 / rate)

    def get_config(self):
        return {**super().get_config(), "initial": self.initial}


def _powers(base, power):
    """Returns max(0, base)^power; where that is 0, so is its gradient."""
    is_positive = base > 0
    found = ops.exp(power * ops.log(ops.where(is_positive, base, ops.ones_like(base))))
    return ops.where(is_positive, found, ops.zeros_like(base))


def _slope(base, power):
    return power * ops.sum(_powers(base, power - 1), axis=-1, keepdims=True)


def scores_oracle(logits, weights, dims, options):
    """p_j = max(0, (alpha - 1) s_j - tau)^(1 / (alpha - 1)), tau by bisection."""
    scores = np.empty_like(logits)
    for h, i in np.ndindex(logits.shape[:2]):
        rate = 1 / (1 + np.exp(-weights["attention/sparsity"][h]))  # alpha - 1
        row = rate * (logits[h, i] - logits[h, i].max())
        low, high = -1.0, 0.0
        for _ in range(80):
            tau = (low + high) / 2
            scores[h, i] = np.maximum(row - tau, 0) ** (1 / rate)
            low, high = (tau, high) if scores[h, i].sum() > 1 else (low, tau)
    return scores


METHOD = dataclasses.replace(
    positions.get("absolute"),
    summary="entmax in place of softmax: scores may be 0, how soon is learned per head",
    source="Correia et al. 2019, eqs. 6 to 8, on learned absolute positions",
    equation=r"s_{ij} = \frac{q_i \cdot k_j}{\sqrt{d}}, \quad "
    r"p_{ij} = \max(0, (\alpha - 1) s_{ij} - \tau_i)^{\frac{1}{\alpha - 1}}",
    where={"\\alpha": "learned per head, $1 < \\alpha < 2$", "\\tau_i": "what lets $p_i$ sum to 1"},
    scores_oracle=scores_oracle,
    options={"initial": 0.0},
    option_meanings={"initial": "The learned number at first; 0: $\\alpha$ is 1.5."},
    other_options=({"initial": 1.0},),
    attention=lambda dims, options: positions.attention(EntmaxAttention, dims, **options),
)
