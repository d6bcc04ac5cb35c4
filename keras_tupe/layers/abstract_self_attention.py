"""Base of all attention layers of the package."""

import abc

import keras
from keras import ops

from keras_tupe.layers._checks import check_positive_integers
from keras_tupe.layers._dense import HeadsDense
from keras_tupe.layers._exporting import is_served
from keras_tupe.layers._parts import at_least_float32, fresh, mask_logits, with_mask_channel
from keras_tupe.layers.dropout import Dropout

MASKED_LOGIT = -1e30  # far below any logit, finite: a row of only such values has a softmax


class AbstractSelfAttention(keras.layers.Layer, abc.ABC):
    """Multi-head self-attention that asks its subclass one question: the logits.

    Projections, padding mask, softmax, dropout and output are here, once. A subclass is final
    and answers `logits(query, key, position_bias, shared_positions)`.

    Equation (Vaswani et al. 2017):

        q = x W^Q + b^Q, k = x W^K + b^K, v = x W^V + b^V   per head
        scores[h, i, :] = softmax over j of logits[h, i, j], padded j left out
        out = concat over h of (scores v) W^O + b^O

    Args:
        num_heads: number of heads H.
        key_dim: size of each head d; queries, keys and values all have it.
        dropout: share of attention scores dropped in training, in [0, 1). Defaults to 0.
        kernel_initializer: Keras initializer of the four kernels.
        **kwargs: `name`, `dtype` and the other arguments of `keras.layers.Layer`.

    Call arguments:
        hidden_states: `(batch, length, hidden_dim)`.
        position_bias: optional logits `(1 or batch, num_heads, length, length)`.
        shared_positions: optional position tensors that all layers share, for methods whose
            position term depends on content too.
        padding_mask: optional integers or booleans `(batch, length)`, 1 = real token.
        training: whether to apply dropout.

    Returns:
        Hidden states of the shape of the input, in the compute dtype.

    Raises:
        ValueError: if a size is not a positive integer, or `position_bias` has another shape.

    Masking: padded keys get exactly zero weight. A sequence without any real token attends to
    nothing and yields the output bias, which is finite. Padded queries attend like others.

    Notes:
        Logits, bias, mask and softmax are in at least float32 under every precision policy.
    """

    def __init__(
        self, num_heads, key_dim, dropout=0.0, kernel_initializer="glorot_uniform", **kwargs
    ):
        # Without autocast a half-precision policy would round position biases, which are float32.
        super().__init__(autocast=False, **kwargs)
        check_positive_integers(num_heads=num_heads, key_dim=key_dim)
        self.num_heads = num_heads
        self.key_dim = key_dim
        self.dropout = dropout
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.query_dense = self._projection("query")
        self.key_dense = self._projection("key")
        self.value_dense = self._projection("value")
        self.dropout_layer = Dropout(dropout, name="dropout", dtype=self.dtype_policy)

    def _projection(self, name):
        return HeadsDense(
            "btm,mhd->bthd",
            output_shape=(None, self.num_heads, self.key_dim),
            bias_axes="hd",
            kernel_initializer=fresh(self.kernel_initializer),
            dtype=self.dtype_policy,
            name=name,
        )

    def build(self, hidden_states_shape):
        hidden_dim = hidden_states_shape[-1]
        self.output_dense = HeadsDense(
            "bthd,hdm->btm",
            output_shape=(None, hidden_dim),
            bias_axes="m",
            kernel_initializer=fresh(self.kernel_initializer),
            dtype=self.dtype_policy,
            name="output",
        )
        for dense in (self.query_dense, self.key_dense, self.value_dense):
            dense.build(hidden_states_shape)
        self.output_dense.build((None, None, self.num_heads, self.key_dim))

    # whether the logits are `content_logits` plus `position_bias` and nothing else
    is_content_and_bias = False

    @property
    def logits_dtype(self):
        """Name of the dtype of logits, biases and scores."""
        return at_least_float32(self.compute_dtype)

    @abc.abstractmethod
    def logits(self, query, key, position_bias, shared_positions):
        """Returns the attention logits `(batch, num_heads, length, length)`.

        Args:
            query: `(batch, length, num_heads, key_dim)` in `logits_dtype`.
            key: the same.
            position_bias: as in the call arguments, in `logits_dtype`, or `None`.
            shared_positions: as in the call arguments.
        """

    def content_logits(self, query, key, num_terms):
        """Returns `q_i . k_j / sqrt(num_terms * key_dim)` per head.

        Args:
            query: `(batch, length, num_heads, key_dim)`.
            key: the same.
            num_terms: number of dot products that the logits sum up, so that their variance
                stays that of one (Ke et al. 2021, below eq. 6).
        """
        query = query * (num_terms * self.key_dim) ** -0.5
        return ops.einsum("bthd,bshd->bhts", query, key)

    def scores(self, hidden_states, position_bias=None, shared_positions=None, padding_mask=None):
        """Returns the attention scores `(batch, num_heads, length, length)` of a call.

        Args:
            hidden_states, position_bias, shared_positions, padding_mask: as in the call arguments.
        """
        scores, has_tokens = self._scores(
            hidden_states, position_bias, shared_positions, padding_mask
        )
        return scores if has_tokens is None else scores * ops.cast(has_tokens, scores.dtype)

    def _scores(self, hidden_states, position_bias, shared_positions, padding_mask):
        """Returns scores, and whether a sequence has any token, `(batch, 1, 1, 1)`: if it has not,
        its scores mean nothing."""
        self._check_bias(position_bias, hidden_states)
        query = ops.cast(self.query_dense(hidden_states), self.logits_dtype)
        key = ops.cast(self.key_dense(hidden_states), self.logits_dtype)
        if position_bias is not None:
            position_bias = ops.cast(position_bias, self.logits_dtype)
        if padding_mask is None:
            return _softmax(self.logits(query, key, position_bias, shared_positions)), None
        is_real = _over_keys(padding_mask, hidden_states)
        if self.is_content_and_bias and position_bias is not None and is_served():
            query, key = with_mask_channel(query, key, is_real, MASKED_LOGIT)
            logits = self.logits(query, key, position_bias, shared_positions)
        else:
            # added, which takes one pass where a choice takes three; far below any logit
            logits = self.logits(query, key, position_bias, shared_positions)  # (b, h, t, s)
            logits = logits + mask_logits(is_real, MASKED_LOGIT, logits.dtype)
        return _softmax(logits), ops.any(is_real, axis=-1, keepdims=True)

    def call(
        self,
        hidden_states,
        position_bias=None,
        shared_positions=None,
        padding_mask=None,
        training=None,
    ):
        scores, has_tokens = self._scores(
            hidden_states, position_bias, shared_positions, padding_mask
        )
        scores = self.dropout_layer(ops.cast(scores, self.compute_dtype), training=training)
        value = self.value_dense(hidden_states)  # (b, s, h, d)
        context = ops.einsum("bhts,bshd->bthd", scores, value)
        if has_tokens is not None:
            context = context * ops.cast(has_tokens, context.dtype)
        return self.output_dense(context)

    def _check_bias(self, position_bias, hidden_states):
        if position_bias is None:
            return
        batch, length = hidden_states.shape[:2]
        received = tuple(position_bias.shape)
        expected = (batch, self.num_heads, length, length)
        fits = len(received) == 4 and all(
            None in (size, wanted) or size == wanted or (axis == 0 and size == 1)
            for axis, (size, wanted) in enumerate(zip(received, expected, strict=True))
        )
        if not fits:
            raise ValueError(
                "`position_bias` must have the shape (1 or batch, num_heads, length, length), "
                f"here {('1 or batch', *expected[1:])}. Received: a position bias of shape "
                f"{received}"
            )

    def compute_output_spec(self, hidden_states, position_bias=None, *args, **kwargs):
        self._check_bias(position_bias, hidden_states)
        return keras.KerasTensor(hidden_states.shape, self.compute_dtype)

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "key_dim": self.key_dim,
            "dropout": self.dropout,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
        }


def _over_keys(padding_mask, hidden_states):
    """Returns the mask as booleans `(batch, 1, 1, length)`; a mask of another shape fails."""
    batch, length = ops.shape(hidden_states)[:2]
    return ops.reshape(ops.cast(padding_mask, "bool"), (batch, 1, 1, length))


def _softmax(logits):
    """Returns the softmax over keys; Keras warns of a softmax over one element."""
    return ops.ones_like(logits) if logits.shape[-1] == 1 else ops.softmax(logits, axis=-1)
