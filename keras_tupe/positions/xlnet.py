"""XLNet's relative positions: projected sinusoids of the distance and two query biases."""

import math

import keras
import numpy as np
from keras import ops

from keras_tupe.layers import (
    AbstractPositionTensors,
    AbstractSelfAttention,
    query_distances,
    untied,
)
from keras_tupe.positions import (
    EITHER_CLS,
    KEY_BIAS,
    DeadWeight,
    PositionMethod,
    attention,
    boolean,
    is_untied,
    memory_unless_untied,
    oracle,
)


@keras.saving.register_keras_serializable(package="keras_tupe")
class RelativeSinusoids(AbstractPositionTensors):
    """Sines and cosines of all distances of a sequence, once for all layers.

    Equation (Dai et al. 2019, after Vaswani et al. 2017; all sines first, then all cosines):

        R[r] = [sin(e / 10000^(2t / D)) for t < D/2, cos(...) for t < D/2],  e = i - j

    Args:
        width: number of channels D; an odd one has one more sine.
        **kwargs: as of `AbstractPositionTensors`, like the call arguments. Any length works.

    Returns:
        Tensor `(2 * length - 1, width)` in at least float32; row r is for j - i = r - (n - 1).
    """

    def __init__(self, width, **kwargs):
        super().__init__(**kwargs)
        self.width = width

    def tensors(self, length):
        query_minus_key = (length - 1) - ops.arange(2 * length - 1, dtype="int32")
        rate = 10000.0 ** -(np.arange(0, self.width, 2) / self.width)
        angle = ops.outer(*(ops.cast(x, self.table_dtype) for x in (query_minus_key, rate)))
        cosines = ops.cos(angle[:, : self.width // 2])
        return ops.concatenate([ops.sin(angle), cosines], axis=-1)


@keras.saving.register_keras_serializable(package="keras_tupe")
class XLNetAttention(AbstractSelfAttention):
    """Self-attention on content and on projected sinusoids of the distance.

    Equation (Yang et al. 2019 after Dai et al. 2019; Huang et al. 2020, eq. 10):

        logits[h, i, j] = ((q_i + u) . k_j + (q_i + v) . (R_{i-j} W^R)) / sqrt(d)

    with u and v learned, per layer and head. An untied [CLS] has two learned vectors instead of
    R_{i-j} W^R, one in its row and one in its column (ours).

    With `memory_length` it is Transformer-XL's. Differences from XLNet: no two-stream attention, no
    segment term.

    Args:
        num_heads, key_dim, **kwargs: as of `AbstractSelfAttention`, like the call arguments;
            `shared_positions`, the answer of `RelativeSinusoids`, is required.
        use_biases: whether u and v exist. Defaults to `True`.
        untie_cls: whether [CLS] is freed from distance. Defaults to `False`.

    References:
        Dai et al. Transformer-XL. ACL 2019. https://arxiv.org/abs/1901.02860
        Yang et al. XLNet. NeurIPS 2019. https://arxiv.org/abs/1906.08237
    """

    def __init__(self, num_heads, key_dim, use_biases=True, untie_cls=False, **kwargs):
        super().__init__(num_heads, key_dim, **kwargs)
        self.use_biases, self.untie_cls = use_biases, untie_cls
        self.distance_dense = self.position_projection("distance")

    def build(self, hidden_states_shape):
        super().build(hidden_states_shape)
        self.distance_dense.build((None, hidden_states_shape[-1]))
        rows = (self.num_heads, self.key_dim)
        if self.use_biases:
            self.content_bias = self.add_table("content_bias", rows)  # u
            self.distance_bias = self.add_table("distance_bias", rows)  # v
        if self.untie_cls:
            self.cls_embeddings = self.add_table("cls_embeddings", (2, *rows))

    def of_layer(self, shared_positions):
        table = ops.transpose(self.distance_dense(shared_positions), (1, 2, 0)) * self.scale
        names = ("content_bias", "distance_bias", "cls_embeddings")
        own = {name: getattr(self, name) for name in names if hasattr(self, name)}
        own = {name: ops.cast(x, self.logits_dtype) for name, x in own.items()}
        return {"table": table, **own}  # (h, d, 2n - 1)

    def prepare(self, query, key, positions, block, is_real=None):
        names = ("content_bias", "distance_bias")
        query = [query + positions[x][:, None, None] if x in positions else query for x in names]
        return query, key  # q + u, q + v

    def logits(self, query, key, positions, block):
        for_content, for_distance = query
        logits = self.products(for_content, key)
        logits = logits + query_distances(for_distance, positions["table"], block)
        if not self.untie_cls:
            return logits
        both = ops.concatenate(query, axis=-1)
        factors = [(factor,) for factor in ops.unstack(positions["cls_embeddings"])]
        return untied(logits, both, key, block, self._pair_logits, factors)

    def _pair_logits(self, query, key, factor):
        for_content, for_distance = ops.split(query, 2, axis=-1)
        of_distance = ops.sum(for_distance * factor[:, None, None], axis=-1, keepdims=True)
        return self.products(for_content, key) + of_distance * self.scale


def dead_weights(dims, options):
    """Returns the weights without a gradient."""
    row = "it adds a constant to row 0 of the logits, which softmax ignores"
    untied = is_untied(options["cls"])
    return (KEY_BIAS, DeadWeight("attention/cls_embeddings", row, row=0)) if untied else (KEY_BIAS,)


def logits_oracle(tokens, weights, dims, options):
    """s_ij = ((q_i + u) . k_j + (q_i + v) . (R_{i-j} W^R)) / sqrt(d)."""
    query, key = oracle.queries_and_keys(tokens, weights, dims)
    length, width = len(tokens), dims.hidden_dim
    zeros = np.zeros((dims.num_heads, dims.key_dim))
    u, v = (weights.get(f"attention/{name}_bias", zeros) for name in ("content", "distance"))
    logits = np.empty((dims.num_heads, length, length))
    for i, j in np.ndindex(length, length):
        angles = [(i - j) / 10000 ** (2 * t / width) for t in range((width + 1) // 2)]
        sines, cosines = [math.sin(a) for a in angles], [math.cos(a) for a in angles]
        r = np.array((sines + cosines)[:width])
        for h in range(dims.num_heads):
            factor = r @ weights["attention/distance/kernel"][:, h]
            if options["cls"] == "untied" and (i == 0 or j == 0):
                factor = weights["attention/cls_embeddings"][0 if i == 0 else 1, h]
            logit = (query[h, i] + u[h]) @ key[h, j] + (query[h, i] + v[h]) @ factor
            logits[h, i, j] = logit / math.sqrt(dims.key_dim)
    return logits


METHOD = PositionMethod(
    summary="projected sinusoids of the distance, two learned query biases",
    source="Yang et al. 2019; Huang et al. 2020, eq. 10",
    logits_oracle=logits_oracle,
    equation=r"s_{ij} = \frac{(q_i + u) \cdot k_j + (q_i + v) \cdot R_{i-j} W^R}{\sqrt{d}}",
    where={
        "R_{i-j}": r"fixed sines and cosines of the distance, $D$ values: "
        r"$\sin((i - j) / 10000^{2t/D})$ for all $t$ from 0 to below $D/2$, then the cosines "
        "of the same angles",
        "W^R": "projection of these waves, one per head and block",
        "u": "learned bias of the query for content, one vector per head and block",
        "v": "learned bias of the query for distance, one vector per head and block",
    },
    options={"use_biases": True, "cls": "tied"},
    option_meanings={"use_biases": "Whether $u$ and $v$ exist."},
    other_options=(*EITHER_CLS, {"use_biases": False}),
    shift_invariant=True,
    prunes_heads=True,
    relative_step_time=(1.04, 1.17),
    shared=lambda dims, options: RelativeSinusoids(
        dims.hidden_dim, dtype=dims.dtype, name="shared_positions"
    ),
    attention=lambda dims, options: attention(
        XLNetAttention,
        dims,
        use_biases=boolean(options, "use_biases"),
        untie_cls=is_untied(options["cls"]),
    ),
    dead_weights=dead_weights,
    refused_memory=memory_unless_untied,
)
