"""XLNet's relative positions: projected sinusoids of the distance and two query biases."""

import math

import keras
import numpy as np
from keras import ops

from keras_tupe import layers
from keras_tupe.positions import KEY_BIAS, DeadWeight, attention_method, boolean, is_untied, oracle


@keras.saving.register_keras_serializable(package="keras_tupe")
class RelativeSinusoids(layers.AbstractPositionTensors):
    """Sines and cosines of all distances of a sequence, once for all layers.

    Equation (Dai et al. 2019, arXiv:1901.02860; all sines first, then all cosines):

        R[r] = [sin(e / 10000^(2t / D)) for t < D/2, cos(...) for t < D/2],  e = i - j

    The answer is `(2 * length - 1, width)` in at least float32; row r is for j - i = r - (n - 1).
    The width is D; an odd one has one more sine. Any length works.
    """

    def __init__(self, width, **kwargs):
        super().__init__(**kwargs)
        self.width = width

    def tensors(self, length):
        query_minus_key = (length - 1) - ops.arange(2 * length - 1, dtype="int32")
        rate = 10000.0 ** -(np.arange(0, self.width, 2) / self.width)
        angle = ops.outer(*(ops.cast(x, self.table_dtype) for x in (query_minus_key, rate)))
        return ops.concatenate([ops.sin(angle), ops.cos(angle[:, : self.width // 2])], axis=-1)


@keras.saving.register_keras_serializable(package="keras_tupe")
class XLNetAttention(layers.AbstractSelfAttention):
    """Self-attention on content and on projected sinusoids of the distance.

    Equation (Yang et al. 2019, arXiv:1906.08237, after Dai et al. 2019; Huang et al. 2020, eq. 10),
    with R of `RelativeSinusoids`:

        logits[h, i, j] = ((q_i + u) . k_j + (q_i + v) . (R_{i-j} W^R)) / sqrt(d)

    with u and v learned per layer and head, if `use_biases`. With `untie_cls` [CLS] has two learned
    vectors instead of R_{i-j} W^R, one in its row and one in its column (ours). With
    `memory_length` it is Transformer-XL's.

    Differences from XLNet: no two-stream attention, no segment term.
    """

    distance_tables = ("table",)

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
        of_distance = layers.query_distances(query[1], positions["table"], block)
        logits = self.products(query[0], key) + of_distance
        if not self.untie_cls:
            return logits
        both = ops.concatenate(query, axis=-1)
        factors = [(factor,) for factor in ops.unstack(positions["cls_embeddings"])]
        return layers.untied(logits, both, key, block, self._pair_logits, factors)

    def _pair_logits(self, query, key, factor):
        for_content, for_distance = ops.split(query, 2, axis=-1)
        of_distance = ops.sum(for_distance * factor[:, None, None], axis=-1, keepdims=True)
        return self.products(for_content, key) + of_distance * self.scale


def _dead_weights(dims, options):
    row = "it adds a constant to row 0 of the logits, which softmax ignores"
    found = KEY_BIAS, DeadWeight("attention/cls_embeddings", row, row=0)
    return found if is_untied(options["cls"]) else found[:1]


def logits_oracle(tokens, weights, dims, options):
    """s_ij = ((q_i + u) . k_j + (q_i + v) . (R_{i-j} W^R)) / sqrt(d)."""
    query, key = oracle.queries_and_keys(tokens, weights, dims)
    zeros, width = np.zeros((dims.num_heads, dims.key_dim)), dims.hidden_dim
    u, v = (weights.get(f"attention/{name}_bias", zeros) for name in ("content", "distance"))

    def logit(h, i, j):
        angles = [(i - j) / 10000 ** (2 * t / width) for t in range((width + 1) // 2)]
        waves = [math.sin(a) for a in angles] + [math.cos(a) for a in angles]
        factor = np.array(waves[:width]) @ weights["attention/distance/kernel"][:, h]
        if options["cls"] == "untied" and (i == 0 or j == 0):
            factor = weights["attention/cls_embeddings"][0 if i == 0 else 1, h]
        both = (query[h, i] + u[h]) @ key[h, j] + (query[h, i] + v[h]) @ factor
        return both / math.sqrt(dims.key_dim)

    return oracle.per_pair(logit, dims.num_heads, len(tokens))


METHOD = attention_method(
    XLNetAttention,
    lambda dims, options: {"use_biases": boolean(options, "use_biases")},
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
    options={"use_biases": True},
    option_meanings={"use_biases": "Whether $u$ and $v$ exist."},
    other_options=({"use_biases": False},),
    shared=lambda dims, options: RelativeSinusoids(
        dims.hidden_dim, dtype=dims.dtype, name="shared_positions"
    ),
    dead_weights=_dead_weights,
    relative_step_time=(1.04, 1.17),
)
