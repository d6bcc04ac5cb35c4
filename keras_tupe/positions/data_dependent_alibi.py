"""Data-dependent ALiBi: how far two tokens are apart is the sum of what lies between them."""

import math

import keras
import numpy as np
from keras import ops

from keras_tupe.layers import AbstractSelfAttention, rows_of
from keras_tupe.positions import attention_method, oracle


@keras.saving.register_keras_serializable(package="keras_tupe")
class ForgetfulAttention(AbstractSelfAttention):
    """Self-attention that forgets by what stands between query and key.

    Equation (Lin et al. 2025, arXiv:2503.02130, here to both sides), gates per token and head:

        logits[h, i, j] = q_i . k_j / sqrt(d) + sum of ln f_t for t = j + 1 .. i     where j <= i
        logits[h, i, j] = q_i . k_j / sqrt(d) + sum of ln b_t for t = i + 1 .. j     where j > i
        f_t = sigmoid(x_t w_f + c_f),  b_t = sigmoid(x_t w_b + c_b)

    The sums are differences of running sums, so nothing is made per pair but the logits. c_f and
    c_b are 5 at first: gates of 0.993. The gates are the last channels of the key's projection, so
    that a cache of keys holds them. With `untie_cls` [CLS] has the content alone in its row and its
    column. Gates b are there if `bidirectional`: no token sees by them under a causal pattern.

    Differences from the source: the paper has decoders, and f alone; b is that of x-transformers.
    """

    first_gate = 5.0

    def __init__(self, num_heads, key_dim, bidirectional=True, untie_cls=False, **kwargs):
        self.num_gates = 2 if bidirectional else 1  # of the projections that are made there
        super().__init__(num_heads, key_dim, **kwargs)
        self.bidirectional, self.untie_cls = bidirectional, untie_cls

    def prepare(self, query, key, positions, block, is_real=None):
        key, gates = ops.split(key, [self.key_dim], axis=-1)
        logs = ops.log_sigmoid(gates)
        if is_real is not None:
            logs = logs * is_real  # what is no token keeps nothing apart
        sums = ops.cumsum(logs, axis=2)
        return [query, rows_of(sums, block.start - block.offset, block.rows)], [key, sums]

    def logits(self, query, key, positions, block):
        (query, of_query), (key, of_key) = query, key
        content = self.products(query, key)
        of_key = ops.swapaxes(of_key, -1, -2)
        between = of_query[..., :1] - of_key[..., :1, :]
        if self.bidirectional:
            right = of_key[..., 1:, :] - of_query[..., 1:]
            between = ops.where(block.j <= block.i, between, right)
        if not self.untie_cls:
            return content + between
        is_cls = ops.logical_or(ops.equal(block.i, 0), ops.equal(block.j, 0))
        return content + ops.where(is_cls, ops.zeros_like(between), between)


def logits_oracle(tokens, weights, dims, options):
    """s_ij = q_i . k_j / sqrt(d) + sum of ln f_t from j + 1 to i, or of ln b_t from i + 1 to j."""
    logits = oracle.content_logits(tokens, weights, dims, num_terms=1)
    w, c = (weights[f"attention/key/gate_{name}"] for name in ("kernel", "bias"))
    logs = np.empty((w.shape[-1], dims.num_heads, len(tokens)))  # ln f_t, ln b_t
    for side, h, t in np.ndindex(logs.shape):
        logs[side, h, t] = -math.log(1 + math.exp(-(tokens[t] @ w[:, h, side] + c[h, side])))
    for h, i, j in np.ndindex(logits.shape):
        if options["cls"] == "untied" and (i == 0 or j == 0):
            continue
        if j <= i:
            logits[h, i, j] += logs[0, h, j + 1 : i + 1].sum()
        elif not dims.is_causal:
            logits[h, i, j] += logs[1, h, i + 1 : j + 1].sum()
    return logits


METHOD = attention_method(
    ForgetfulAttention,
    lambda dims, options: {"bidirectional": not dims.is_causal},
    summary="a penalty on distance, where each token says how far it keeps others apart",
    source="Lin et al. 2025 (Forgetting Transformer); x-transformers",
    logits_oracle=logits_oracle,
    equation=r"s_{ij} = \frac{q_i \cdot k_j}{\sqrt{d}} - \delta_{ij}, \quad "
    r"\delta_{ij} = -\sum_{t=j+1}^{i} \ln f_t \;\text{ if } j \le i, \quad "
    r"-\sum_{t=i+1}^{j} \ln b_t \;\text{ if } j > i",
    where={
        r"\delta_{ij}": "distance of two tokens, the sum of what the tokens between them say",
        "f_t": r"gate of token $t$ to the left, per head and block: $\sigma(x_t w_f + c_f)$ with "
        r"$\sigma$ the logistic function; 0.993 at first, where $\ln f_t = -0.0067$",
        "b_t": r"gate of token $t$ to the right, likewise; none under a causal pattern",
    },
    relative_step_time=(1.03, 1.20),
)
