"""TUPE's failed attempt: TUPE-R with a low-rank relative bias instead of the buckets."""

import dataclasses

import keras
import numpy as np
from keras import ops

from keras_tupe.layers import PositionBias
from keras_tupe.positions import (
    EITHER_CLS,
    DeadWeight,
    check,
    combined_bias,
    is_untied,
    oracle,
    tupe_a,
)


@keras.saving.register_keras_serializable(package="keras_tupe")
class LowRankDistanceBias(PositionBias):
    """A bias of distance: the dot product of two projections of one learned vector.

    Equation (Ke et al. 2021, the failed attempts of the appendix), unscaled:

        bias[h, i, j] = (r_{j - i} F^Q_h) . (r_{j - i} F^K_h)

    Differences from the source: the paper does not say how r is indexed and scaled. Here
    it is clipped at `max_distance` and not scaled, like T5's bias.

    Args:
        num_heads: number of attention heads H.
        key_dim: size of each head d.
        max_distance: distance, in tokens, from which on all are one. Defaults to 128.
        initializer: Keras initializer of r, F^Q and F^K. Defaults to a normal of deviation 0.02.
        width: number of values of r. Defaults to `None`: H * d.
        **kwargs: as of `PositionBias`, like the call arguments and the answer. Any length works.

    Raises:
        ValueError: if a size is not a positive integer.

    References:
        Ke, He, Liu. Rethinking Positional Encoding in Language Pre-training. ICLR 2021.
        https://arxiv.org/abs/2006.15595
    """

    def __init__(
        self, num_heads, key_dim, max_distance=128, initializer=None, width=None, **kwargs
    ):
        super().__init__(num_heads, initializer, **kwargs)
        self.key_dim = key_dim
        self.max_distance = max_distance
        self.width = num_heads * key_dim if width is None else width
        for name in ("key_dim", "max_distance", "width"):
            check.integer(name, getattr(self, name))

    def build(self, hidden_states_shape):
        kernel = (self.width, self.num_heads, self.key_dim)
        self.embeddings = self.add_table("embeddings", (2 * self.max_distance + 1, self.width))
        self.query_kernel = self.add_table("query_kernel", kernel)
        self.key_kernel = self.add_table("key_kernel", kernel)

    def parts(self, length):
        rows = ops.cast(self.embeddings, self.table_dtype)
        kernels = (ops.cast(x, self.table_dtype) for x in (self.query_kernel, self.key_kernel))
        query, key = (ops.einsum("rm,mhd->rhd", rows, kernel) for kernel in kernels)
        values = ops.transpose(ops.sum(query * key, axis=-1))  # (h, 2k + 1)
        reach = self.max_distance
        clipped = ops.clip(self.offsets(length), -reach, reach) + reach
        return {"distances": ops.take(values, clipped, axis=-1)}


def bias(dims, options):
    """Returns TUPE-A's correlation plus the low-rank bias."""
    relative = LowRankDistanceBias(
        dims.num_heads,
        dims.key_dim,
        max_distance=options["max_distance"],
        initializer=dims.initializer(),
        width=dims.hidden_dim,
        dtype=dims.dtype,
        name="relative",
    )
    absolute = tupe_a.untied_part(dims, {**options, "variant": "paper"})
    return combined_bias([absolute, relative], dims, cls=options["cls"])


def dead_weights(dims, options):
    """Returns the weights without a gradient."""
    records = tupe_a.dead_weights(dims, {**options, "variant": "paper"})
    reach = options["max_distance"]
    # The longest distance is between [CLS] and the last token.
    longest = dims.max_sequence_length - (2 if is_untied(options["cls"]) else 1)
    far = "no two tokens with a relative bias are so far apart"
    return records + tuple(
        DeadWeight("relative/embeddings", far, row=row)
        for distance in range(longest + 1, reach + 1)
        for row in (reach - distance, reach + distance)
    )


def logits_oracle(tokens, weights, dims, options):
    """s_ij = q_i . k_j / sqrt(2d) + reset((p_i U^Q) . (p_j U^K) / sqrt(2d) + r F^Q . r F^K)."""
    length = len(tokens)
    correlation, theta = tupe_a.correlation_oracle(length, weights, dims, options)
    prefix = "position_bias/relative"
    table = weights[f"{prefix}/embeddings"]
    reach = (len(table) - 1) // 2
    relative = np.empty_like(correlation)
    for h, i, j in np.ndindex(relative.shape):
        row = table[oracle.clip(j - i, reach) + reach]
        query = row @ weights[f"{prefix}/query_kernel"][:, h]
        relative[h, i, j] = query @ (row @ weights[f"{prefix}/key_kernel"][:, h])
    both = correlation + relative
    content = oracle.content_logits(tokens, weights, dims, num_terms=2)
    return content + (both if theta is None else oracle.reset_cls(both, *theta))


METHOD = dataclasses.replace(
    tupe_a.METHOD,
    summary="TUPE-R with a low-rank bias of distance in place of the buckets",
    source="Ke et al. 2021, appendix (failed attempts)",
    logits_oracle=logits_oracle,
    equation=(
        r"s_{ij} = \frac{q_i \cdot k_j}{\sqrt{2d}} + \mathrm{reset}_\theta\left("
        r"\frac{\mathrm{LN}(p_i) U^Q \cdot \mathrm{LN}(p_j) U^K}{\sqrt{2d}} "
        r"+ r_e F^Q \cdot r_e F^K\right), "
        r"\quad e = \mathrm{clip}(j - i, m)"
    ),
    where={
        **tupe_a.METHOD.where,
        "r_e": "learned vector of distance $e$, shared by all heads and blocks",
        "F^Q": "projections of these vectors, one per head, shared by all blocks; also $F^K$",
        "m": "the option `max_distance`",
    },
    options={"max_distance": 128, "cls": "untied"},
    option_meanings={"max_distance": "Distance, in tokens, from which on all are one."},
    other_options=(*EITHER_CLS, {"max_distance": 11}),
    bias=bias,
    dead_weights=dead_weights,
)
