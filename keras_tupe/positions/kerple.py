"""KERPLE: a learned kernel of the distance per head, logarithmic or a power."""

import math

import keras
from keras import ops

from keras_tupe.layers import PositionBias
from keras_tupe.positions import additive_method, check, oracle


@keras.saving.register_keras_serializable(package="keras_tupe")
class KerpleBias(PositionBias):
    """A penalty that grows with distance as each head learns.

    Equation (Chi et al. 2022, arXiv:2205.09921, the power and the logarithmic variant):

        bias[h, i, j] = -r_1 ln(1 + r_2 |j - i|)      kernel "log",   r_1 > 0, r_2 > 0
        bias[h, i, j] = -r_1 |j - i|^r_2              kernel "power", r_1 > 0, 0 < r_2 < 2

    with r_1 and r_2 per head. Here r_1 = softplus(a), and r_2 = softplus(b), or 2 sigmoid(b) for
    the power, of free weights a and b. `kernel` is the option below. Any length works.

    Differences from the source: all blocks share the bias; the released code has one per block,
    and keeps r_1 and r_2 positive by setting what is below 0.01 to 0.01 in every step. It starts
    with r_1 uniform below 2 and r_2 below 1, the other way round for the power, whose r_2 it cuts
    at 2 too; here a and b are uniform from -2 to 2.
    """

    def __init__(self, num_heads, kernel="log", initializer=None, **kwargs):
        check.choice("kernel", kernel, ("log", "power"))
        if initializer is None:
            initializer = keras.initializers.RandomUniform(-2.0, 2.0)
        super().__init__(num_heads, initializer, **kwargs)
        self.kernel = kernel

    def build(self, hidden_states_shape):
        self.magnitude = self.add_table("magnitude", (self.num_heads,))  # a
        self.growth = self.add_table("growth", (self.num_heads,))  # b

    def parts(self, length):
        found = (self.magnitude, self.growth, ops.abs(self.offsets(length)))
        magnitude, growth, distances = (ops.cast(x, self.table_dtype) for x in found)
        magnitude, growth = (ops.expand_dims(x, 1) for x in (magnitude, growth))
        if self.kernel == "log":
            grown = ops.log(1 + ops.softplus(growth) * distances)
        else:  # of distance 1 and more, as the derivative of 0^r is no number
            powers = ops.exp(2 * ops.sigmoid(growth) * ops.log(ops.maximum(distances, 1)))
            grown = ops.where(distances > 0, powers, ops.zeros_like(powers))
        return {"distances": -ops.softplus(magnitude) * grown}


def logits_oracle(tokens, weights, dims, options):
    """s_ij = q_i . k_j / sqrt(d) - r_1 ln(1 + r_2 |j - i|), or - r_1 |j - i|^r_2."""

    def penalty(h, i, j):
        a = weights["position_bias/kernel_of_distance/magnitude"][h]
        b = weights["position_bias/kernel_of_distance/growth"][h]
        r_1 = math.log(1 + math.exp(a))
        if options["kernel"] == "log":
            return -r_1 * math.log(1 + math.log(1 + math.exp(b)) * abs(j - i))
        return -r_1 * abs(j - i) ** (2 / (1 + math.exp(-b)))

    bias = oracle.per_pair(penalty, dims.num_heads, len(tokens))
    return oracle.biased_logits(tokens, weights, dims, options, bias)


METHOD = additive_method(
    lambda dims, options: KerpleBias(
        dims.num_heads, options["kernel"], dtype=dims.dtype, name="kernel_of_distance"
    ),
    summary="a penalty on distance with a learned kernel, a logarithm or a power",
    source="Chi et al. 2022 (KERPLE, both variants)",
    logits_oracle=logits_oracle,
    equation=r"s_{ij} = \frac{q_i \cdot k_j}{\sqrt{d}} - r_1 \ln(1 + r_2 \, |j - i|)",
    where={
        "r_1": "learned positive number per head, shared by all blocks: how much distance counts",
        "r_2": "learned positive number per head, shared by all blocks: how soon. With "
        r'`kernel="power"` the penalty is $r_1 \, |j - i|^{r_2}$, where $0 < r_2 < 2$',
    },
    options={"kernel": "log"},
    option_meanings={
        "kernel": '`"log"`: the penalty grows as the logarithm of the distance; `"power"`: as a '
        "power of it."
    },
    other_options=({"kernel": "power"},),
    shift_invariant=True,
)
