"""Adaptive span: each head learns how far it looks, by a mask that falls off softly."""

import keras
import numpy as np
from keras import ops

from keras_tupe.layers import AbstractSelfAttention
from keras_tupe.positions import KEY_BIAS, PositionMethod, attention, oracle

OUT_OF_SPAN = -(2.0**90)  # exact in float32 and float64, and above the mask of padded keys


@keras.saving.register_keras_serializable(package="examples")
class AdaptiveSpanAttention(AbstractSelfAttention):
    """Self-attention within a learned span of each head.

    Equation (Sukhbaatar et al. 2019, eqs. 4 and 5), z_h = R |w_h| with w learned:

        m_h(t) = clip((R + z_h - t) / R, 0, 1)
        scores[h, i, j] = m_h(|j - i|) exp(q_i . k_j / sqrt(d)) / (the sum of that over j)

    that is, the softmax of logits to which log m_h is added.

    Differences from the source: both sides are seen; no relative positions beside the mask; z is
    not clamped to a largest span, but is no less than 0 by its absolute value.

    Args:
        num_heads, key_dim: as in `AbstractSelfAttention`.
        ramp: R, tokens over which the mask falls from 1 to 0, > 0. 32 in the paper.
        penalty: lambda >= 0 of the paper's loss (lambda / H) sum_h z_h, a regularizer: `fit` and
            `keras_tupe.trainer.Trainer` add it to the loss.
        **kwargs: the other arguments of `AbstractSelfAttention`.
    """

    def __init__(self, num_heads, key_dim, ramp=8.0, penalty=0.0, **kwargs):
        super().__init__(num_heads, key_dim, **kwargs)
        if not ramp > 0 or not penalty >= 0:
            raise ValueError(
                "`ramp` must be a number > 0 and `penalty` a number >= 0. "
                f"Received: ramp={ramp}, penalty={penalty}"
            )
        self.ramp, self.penalty = ramp, penalty

    def build(self, hidden_states_shape):
        super().build(hidden_states_shape)
        rate = self.penalty * self.ramp / self.num_heads
        self.span = self.add_weight(
            shape=(self.num_heads,),
            initializer="ones",
            regularizer=keras.regularizers.L1(rate) if rate else None,
            autocast=False,
            name="span",
        )

    def of_layer(self, shared_positions):
        return ops.abs(ops.cast(self.span, self.logits_dtype))[:, None, None, None]

    def logits(self, query, key, positions, block):
        distance = ops.cast(ops.abs(block.j - block.i), query.dtype) / self.ramp
        mask = ops.minimum(1 + positions - distance, 1)  # (h, 1, rows, keys)
        is_seen = mask > 0
        log = ops.log(ops.where(is_seen, mask, ops.ones_like(mask)))
        log = ops.where(is_seen, log, ops.cast(OUT_OF_SPAN, log.dtype))
        return self.products(query, key) + log

    def get_config(self):
        return {**super().get_config(), "ramp": self.ramp, "penalty": self.penalty}


def logits_oracle(tokens, weights, dims, options):
    """s_ij = q_i . k_j / sqrt(d) + log m_h(|j - i|), far below where m_h is 0."""
    logits = oracle.content_logits(tokens, weights, dims, num_terms=1)
    ramp = options["ramp"]
    for h, i, j in np.ndindex(logits.shape):
        span = ramp * abs(weights["attention/span"][h])
        soft = np.clip((ramp + span - abs(j - i)) / ramp, 0, 1)
        logits[h, i, j] = logits[h, i, j] + np.log(soft) if soft > 0 else -(2.0**90)
    return logits


METHOD = PositionMethod(
    summary="adaptive span: each head learns how far it looks",
    source="Sukhbaatar et al. 2019, eqs. 4 to 6",
    logits_oracle=logits_oracle,
    equation=r"s_{ij} = \frac{q_i \cdot k_j}{\sqrt{d}} + \log m(|j - i|), \quad "
    r"m(t) = \min(1, \max(0, \frac{R + z - t}{R}))",
    where={"z": "learned span of a head, in tokens", "R": "the option `ramp`"},
    options={"ramp": 8.0, "penalty": 0.0},
    option_meanings={
        "ramp": "Tokens over which the mask falls from 1 to 0.",
        "penalty": "Factor of the mean span in the loss.",
    },
    other_options=({"ramp": 5.0}, {"penalty": 0.01}),
    attention=lambda dims, options: attention(AdaptiveSpanAttention, dims, **options),
    dead_weights=lambda dims, options: (KEY_BIAS,),
    shift_invariant=True,
)
