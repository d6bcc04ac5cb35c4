"""Base of all attention layers of the package."""

import abc

import keras
from keras import ops

from keras_tupe import attention_patterns
from keras_tupe.layers._checks import check_positive_integers
from keras_tupe.layers._dense import HeadsDense
from keras_tupe.layers._parts import at_least_float32, fresh
from keras_tupe.layers.attention.cached import KeepsKeys
from keras_tupe.layers.attention.core import attend, scores
from keras_tupe.layers.attention.heads import checked_heads, gated, take_heads
from keras_tupe.layers.attention.layer_terms import HasTerms
from keras_tupe.layers.attention.random_bits import can_draw
from keras_tupe.layers.attention.terms import Products
from keras_tupe.layers.attention.weighted_values import ScoreDropout
from keras_tupe.layers.dropout import Dropout


class AbstractSelfAttention(KeepsKeys, HasTerms, keras.layers.Layer, abc.ABC):
    """Multi-head self-attention that asks its subclass one question: the terms of the logits.

    Projections, padding mask, softmax, dropout and output are here, once. A subclass is final
    and answers `logit_terms(query, key, shared_positions)`, with which long sequences are done in
    blocks of query rows, without any tensor of shape (length, length); or, if its logits are no sum
    of such terms, all of them at once: `logits(query, key, position_bias, shared_positions)`.

    Equation (Vaswani et al. 2017):

        q = x W^Q + b^Q, k = x W^K + b^K, v = x W^V + b^V   per head
        scores[h, i, :] = softmax over j of logits[h, i, j], padded j left out
        out = concat over h of (scores v) W^O + b^O

    Args:
        num_heads: number of heads H.
        key_dim: size of each head d; queries, keys and values all have it.
        dropout: share of attention scores dropped in training, in [0, 1). Defaults to 0.
        kernel_initializer: Keras initializer of the four kernels.
        attention_pattern: name of the attention pattern, that is who attends to whom, see
            `keras_tupe.attention_patterns`. Defaults to `"full"`.
        pattern_options: dictionary of the pattern's options, over its defaults.
        layer_index: number of the block that the layer is for, from 0 on; patterns may differ by
            it. Defaults to 0.
        shared_heads: numbers of the heads of `position_bias` and `shared_positions` that are the
            layer's, ascending, where an encoder has more of them because heads were removed from
            this layer. Defaults to `None`: all.
        **kwargs: `name`, `dtype` and the other arguments of `keras.layers.Layer`.

    Call arguments:
        hidden_states: `(batch, length, hidden_dim)`.
        position_bias: optional logits `(1 or batch, num_heads, length, length)`, or what a
            `CombinedPositionBias` makes in their place with `as_parts=True`.
        shared_positions: optional position tensors that all layers share, for methods whose
            position term depends on content too.
        padding_mask: optional integers or booleans `(batch, length)`, 1 = real token.
        training: whether to apply dropout.

    Returns:
        Hidden states of the shape of the input, in the compute dtype.

    Raises:
        ValueError: if a size is not a positive integer, the pattern or an option of it is not
            known or impossible, `shared_heads` are not as many numbers as heads, or
            `position_bias` has another shape.

    Masking: padded keys get exactly zero weight. A sequence without any real token attends to
    nothing and yields the output bias, which is finite. Padded queries attend like others.

    Notes:
        Logits, bias, mask and softmax are in at least float32 under every precision policy.
    """

    def __init__(
        self,
        num_heads,
        key_dim,
        dropout=0.0,
        kernel_initializer="glorot_uniform",
        attention_pattern="full",
        pattern_options=None,
        layer_index=0,
        shared_heads=None,
        **kwargs,
    ):
        # Without autocast a half-precision policy would round position biases, which are float32.
        super().__init__(autocast=False, **kwargs)
        base = AbstractSelfAttention
        if type(self).logit_terms is base.logit_terms and type(self).logits is base.logits:
            raise TypeError(
                f"{type(self).__name__} is abstract: a subclass says what its logits are, by "
                f"`logit_terms` or `logits`. Received: {type(self).__name__} with neither"
            )
        check_positive_integers(num_heads=num_heads, key_dim=key_dim)
        self.num_heads = num_heads
        self.key_dim = key_dim
        self.dropout = dropout
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.query_dense = self._projection("query")
        self.key_dense = self._projection("key")
        self.value_dense = self._projection("value")
        pattern = attention_patterns.get(attention_pattern)
        self.attention_pattern = attention_pattern
        self.pattern_options = pattern.resolve(pattern_options)
        self.layer_index = layer_index
        self.visible = pattern.visible(layer_index, self.pattern_options)  # `None`: all see all
        self.shared_heads = checked_heads(shared_heads, num_heads)
        self._global_denses = []
        if self.visible is not None and self.visible.separate_global:
            self._global_denses = [
                self._projection(f"global_{name}") for name in ("query", "key", "value")
            ]
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
        for dense in (self.query_dense, self.key_dense, self.value_dense, *self._global_denses):
            dense.build(hidden_states_shape)
        self.output_dense.build((None, None, self.num_heads, self.key_dim))

    def own_heads(self, x, axis):
        """Returns a tensor that all layers share, of the layer's own heads.

        Args:
            x: tensor with an axis of the heads of the whole encoder.
            axis: that axis.
        """
        return take_heads(x, self.shared_heads, axis)

    @property
    def logits_dtype(self):
        """Name of the dtype of logits, biases and scores."""
        return at_least_float32(self.compute_dtype)

    def products(self, query, key, num_terms):
        """Returns the term `q_i . k_j / sqrt(num_terms * key_dim)` per head.

        Args:
            query: `(num_heads, batch, length, key_dim)`.
            key: the same.
            num_terms: number of dot products that the logits sum up, so that their variance
                stays that of one (Ke et al. 2021, below eq. 6).
        """
        return Products(query, key, (num_terms * self.key_dim) ** -0.5)

    def content_logits(self, query, key, num_terms):
        """Returns `q_i . k_j / sqrt(num_terms * key_dim)`, for `logits` of a subclass.

        Args:
            query, key: as for `logits`.
            num_terms: as for `products`.
        """
        query = query * (num_terms * self.key_dim) ** -0.5
        return ops.einsum("bthd,bshd->bhts", query, key)

    def scores(self, hidden_states, position_bias=None, shared_positions=None, padding_mask=None):
        """Returns the attention scores `(batch, num_heads, length, length)` of a call.

        Args:
            hidden_states, position_bias, shared_positions, padding_mask: as in the call arguments.
        """
        length = ops.shape(hidden_states)[1]
        terms = self.terms(hidden_states, position_bias, shared_positions)
        is_real = self._over_keys(padding_mask, hidden_states)
        found = scores(terms, length, is_real)
        if self._global_denses:
            count = self.visible.num_global
            terms = self.terms(hidden_states, position_bias, shared_positions, of_globals=True)
            own = scores(terms, length, is_real)
            found = ops.concatenate([own[:, :, :count], found[:, :, count:]], axis=2)
        if is_real is not None:
            found = found * _has_tokens(is_real, found.dtype)
        return ops.swapaxes(found, 0, 1)

    def call(
        self,
        hidden_states,
        position_bias=None,
        shared_positions=None,
        padding_mask=None,
        training=None,
    ):
        terms = self.terms(hidden_states, position_bias, shared_positions)
        is_real = self._over_keys(padding_mask, hidden_states)
        value = ops.transpose(self.value_dense(hidden_states), (2, 0, 1, 3))  # (h, b, s, d)
        dropout = None
        if training and self.dropout > 0:
            generator = self.dropout_layer.seed_generator
            dropout = ScoreDropout(self.dropout, generator.next() if can_draw() else generator)
        of_globals = None
        if self._global_denses:
            of_globals = (
                self.terms(hidden_states, position_bias, shared_positions, of_globals=True),
                ops.transpose(self._global_denses[2](hidden_states), (2, 0, 1, 3)),
            )
        context = gated(self, attend(terms, value, is_real, dropout, self.visible, of_globals))
        if is_real is not None:
            context = context * _has_tokens(is_real, context.dtype)
        return self.output_dense(ops.transpose(context, (1, 2, 0, 3)))

    def terms(self, hidden_states, position_bias, shared_positions, of_globals=False):
        """Returns the terms of the logits of a call, a list of `Term`.

        Args:
            hidden_states, position_bias, shared_positions: as in the call arguments.
            of_globals: whether they are those that global tokens see by, where these have
                projections of their own. Defaults to `False`.
        """
        self._check_bias(position_bias, hidden_states)
        dtype = self.logits_dtype
        denses = self._global_denses if of_globals else (self.query_dense, self.key_dense)
        query, key = (ops.cast(dense(hidden_states), dtype) for dense in denses[:2])
        query, key = (ops.transpose(x, (2, 0, 1, 3)) for x in (query, key))
        positions = None if shared_positions is None else self.of_layer(shared_positions)
        return self.terms_of(query, key, position_bias, positions)

    def _over_keys(self, padding_mask, hidden_states):
        """Returns the mask as booleans `(1, batch, 1, length)`; a mask of another shape fails."""
        if padding_mask is None:
            return None
        batch, length = ops.shape(hidden_states)[:2]
        return ops.reshape(ops.cast(padding_mask, "bool"), (1, batch, 1, length))

    def _check_bias(self, position_bias, hidden_states):
        if position_bias is None:
            return
        if isinstance(position_bias, dict):
            if position_bias["bias"].shape[-1] == 0:
                return
            position_bias = position_bias["bias"]
        batch, length = hidden_states.shape[:2]
        received = tuple(position_bias.shape)
        heads = self.num_heads if self.shared_heads is None else None
        expected = (batch, heads, length, length)
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
            "attention_pattern": self.attention_pattern,
            "pattern_options": dict(self.pattern_options),
            "layer_index": self.layer_index,
            "shared_heads": self.shared_heads and list(self.shared_heads),
        }


def _has_tokens(is_real, dtype):
    """Returns 1 for sequences with a token, 0 for others, `(1, batch, 1, 1)`."""
    return ops.cast(ops.any(is_real, axis=-1, keepdims=True), dtype)
