"""A whole positional method in one file: a fixed linear penalty on distance, as in ALiBi."""

import keras
import numpy as np
from keras import ops

from keras_tupe.positions import KEY_BIAS, PositionMethod, oracle


@keras.saving.register_keras_serializable(package="outside")
class LinearSlopeBias(keras.layers.Layer):
    """bias[h, i, j] = -slope * 2^(-8 h / H) |j - i|, for h = 1..H (Press et al. 2022)."""

    def __init__(self, num_heads, slope=1.0, **kwargs):
        super().__init__(autocast=False, **kwargs)
        self.num_heads, self.slope = num_heads, slope

    def call(self, hidden_states):
        dtype = "float64" if self.compute_dtype == "float64" else "float32"
        place = ops.arange(ops.shape(hidden_states)[1])
        distance = ops.cast(ops.abs(place[None, :] - place[:, None]), dtype)
        rates = self.slope * 2.0 ** (-8 * np.arange(1, self.num_heads + 1) / self.num_heads)
        return -ops.cast(rates, dtype)[None, :, None, None] * distance

    def get_config(self):
        return {**super().get_config(), "num_heads": self.num_heads, "slope": self.slope}


def logits_oracle(tokens, weights, dims, options):
    """s_ij = q_i . k_j / sqrt(d) - slope_h |j - i|."""
    logits = oracle.content_logits(tokens, weights, dims, num_terms=1)
    for h, i, j in np.ndindex(logits.shape):
        logits[h, i, j] -= options["slope"] * 2 ** (-8 * (h + 1) / dims.num_heads) * abs(j - i)
    return logits


METHOD = PositionMethod(
    summary="fixed linear penalty on distance",
    source="Press et al. 2022, Sec. 3",
    equation=r"s_{ij} = \frac{q_i \cdot k_j}{\sqrt{d}} - c \, 2^{-8h/H} \, |j - i|",
    where={"c": "the option `slope`", "h": "number of the head, of $H$"},
    logits_oracle=logits_oracle,
    options={"slope": 1.0},
    option_meanings={"slope": "Penalty of one token of distance, before the share of the head."},
    other_options=({"slope": 0.3},),
    shift_invariant=True,
    bias=lambda dims, options: LinearSlopeBias(
        dims.num_heads, options["slope"], dtype=dims.dtype, name="position_bias"
    ),
    dead_weights=lambda dims, options: (KEY_BIAS,),
)
