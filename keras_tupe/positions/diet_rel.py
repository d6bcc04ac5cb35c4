"""DIET-REL: a free scalar per distance, head and layer."""

import math

import keras
from keras import ops

from keras_tupe.layers import AbstractDistanceAttention
from keras_tupe.layers._cls import replace_cls
from keras_tupe.layers._exporting import position_constant
from keras_tupe.layers.attention.distances import expand_table, table_values
from keras_tupe.layers.attention.terms import Bias
from keras_tupe.positions import distance_method, oracle


@keras.saving.register_keras_serializable(package="keras_tupe")
class DistanceBiasAttention(AbstractDistanceAttention):
    """Self-attention with a learned scalar per distance added, in every layer its own.

    Equation (Chen et al. 2021, DIET-REL), the scalar unscaled:

        logits[h, i, j] = q_i . k_j / sqrt(d) + a_{j - i}

    Differences from T5: no buckets, and no sharing by layers.

    Arguments, call arguments, errors, shapes and masking are those of `AbstractDistanceAttention`;
    the table has the width 1.
    """

    @property
    def table_widths(self):
        return (1,)

    def logit_terms(self, query, key, shared_positions):
        added = position_constant(self)
        if added is None:
            return super().logit_terms(query, key, shared_positions)
        bias = Bias(ops.expand_dims(added, 0))
        return [self.products(query, key, num_terms=1).with_bias(bias)]

    def position_logits(self, hidden_states, shared_positions=None):
        """Returns what is added to the logits whatever the words are, for exports.

        Args:
            hidden_states: `(batch, length, ...)`; only its length is used.
            shared_positions: as in the call arguments.

        Returns:
            Tensor `(num_heads or 1, length, length)`.
        """
        table = self.table(hidden_states, shared_positions)
        added = expand_table(table["distances"], ops.shape(hidden_states)[1])
        if "cls" not in table:
            return added
        row, column = (ops.expand_dims(table["cls"][place], -1) for place in (0, 1))
        return replace_cls(added, row, column)

    def distance_terms(self, query, key, table):
        bias = Bias({"distances": table_values(table, ops.shape(query)[2])})
        return [self.products(query, key, num_terms=1).with_bias(bias)]

    def pair_logits(self, query, key, factor):
        products = ops.matmul(query * self.key_dim**-0.5, ops.swapaxes(key, -1, -2))
        return products + factor[:, None, None]


def logits_oracle(tokens, weights, dims, options):
    """s_ij = q_i . k_j / sqrt(d) + R[j - i]."""
    query, key = oracle.queries_and_keys(tokens, weights, dims)
    a = oracle.distance_vectors(len(tokens), weights, dims, options)
    return oracle.dot_products(query, key) / math.sqrt(dims.key_dim) + a[..., 0]


METHOD = distance_method(
    DistanceBiasAttention,
    initializer="normal",
    width=1,
    dead=("key_bias", "cls_row"),
    summary="a free scalar per distance, head and layer",
    source="Chen et al. 2021, Sec. 3 (DIET-REL)",
    logits_oracle=logits_oracle,
    equation=r"s_{ij} = \frac{q_i \cdot k_j}{\sqrt{d}} + a_{j-i}",
)
