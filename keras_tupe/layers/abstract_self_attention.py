"""Base of all attention layers of the package."""

import abc

import keras
from keras import ops

from keras_tupe import attention_patterns
from keras_tupe.layers._checks import check_positive_integers
from keras_tupe.layers._dense import HeadsDense
from keras_tupe.layers._parts import at_least_float32, fresh
from keras_tupe.layers.attention.cached import KeepsKeys
from keras_tupe.layers.attention.core import attend
from keras_tupe.layers.attention.heads import checked_heads, gated
from keras_tupe.layers.attention.layer_scores import HasScores, has_tokens
from keras_tupe.layers.attention.layer_terms import HasTerms
from keras_tupe.layers.attention.random_bits import can_draw
from keras_tupe.layers.attention.segments import RemembersSegments, segments_of
from keras_tupe.layers.attention.weighted_values import ScoreDropout
from keras_tupe.layers.dropout import Dropout


class AbstractSelfAttention(
    KeepsKeys, RemembersSegments, HasScores, HasTerms, keras.layers.Layer, abc.ABC
):
    """Multi-head self-attention that asks its subclass one question: the terms of the logits.

    Projections, padding mask, softmax, dropout and output are here, once. A subclass is final
    and answers `logit_terms(query, key, shared_positions)`, with which long sequences are done in
    blocks of query rows, without any tensor of shape (length, length); or, if its logits are no sum
    of such terms, all of them at once: `logits(query, key, position_bias, shared_positions)`. If it
    overrides `normalized`, scores are no softmax; with `shares_projection = True` keys are
    projected as queries are, by one layer.

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
        memory_length: tokens before each segment of a row that it attends to as well, without a
            gradient to their hidden states. Defaults to 0.
        segment_length: tokens of a segment that a row is cut into. Defaults to `memory_length`, and
            without a memory to whole rows.
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
        remembered: with a memory: hidden states of the memory before the first segment and those of
            the call, `(batch, memory_length + length, hidden_dim)`, for keys and values. Defaults
            to no memory there, and `hidden_states`.
        memory_mask: which tokens of that memory there are, `(batch, memory_length)`.

    Returns:
        Hidden states of the shape of the input, in the compute dtype.

    Raises:
        ValueError: if a size is not a positive integer, the pattern or an option of it is not
            known or impossible, `shared_heads` are not as many numbers as heads, or
            `position_bias` has another shape.

    With segments, position terms are those of `memory_length + segment_length` tokens, of which the
    segment is the last: that is the length of `position_bias` and `shared_positions`.

    Masking: padded keys get exactly zero weight. A sequence without any real token attends to
    nothing and yields the output bias, which is finite. Padded queries attend like others.

    Notes:
        Logits, bias, mask and softmax are in at least float32 under every precision policy.
    """

    shares_projection = False  # whether W^K, b^K are W^Q, b^Q (Kitaev et al. 2020, Sec. 2)

    def __init__(
        self,
        num_heads,
        key_dim,
        dropout=0.0,
        kernel_initializer="glorot_uniform",
        attention_pattern="full",
        pattern_options=None,
        layer_index=0,
        memory_length=0,
        segment_length=None,
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
        self.key_dense = self.query_dense if self.shares_projection else self._projection("key")
        self.value_dense = self._projection("value")
        pattern = attention_patterns.get(attention_pattern)
        self.attention_pattern = attention_pattern
        self.pattern_options = pattern.resolve(pattern_options)
        self.layer_index = layer_index
        self.visible = pattern.visible(layer_index, self.pattern_options)  # `None`: all see all
        self.memory_length = memory_length
        self.segment_length = segment_length
        self.segments = segments_of(memory_length, segment_length, self.visible)
        self.shared_heads = checked_heads(shared_heads, num_heads)
        self._global_denses = []
        if self.visible is not None and self.visible.separate_global:
            self._global_denses = [
                self._projection(f"global_{name}") for name in ("query", "key", "value")
            ]
            if self.shares_projection:
                self._global_denses[1] = self._global_denses[0]
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
        denses = (self.query_dense, self.key_dense, self.value_dense, *self._global_denses)
        for dense in dict.fromkeys(denses):  # each once
            dense.build(hidden_states_shape)
        self.output_dense.build((None, None, self.num_heads, self.key_dim))

    @property
    def logits_dtype(self):
        """Name of the dtype of logits, biases and scores."""
        return at_least_float32(self.compute_dtype)

    def call(
        self,
        hidden_states,
        position_bias=None,
        shared_positions=None,
        padding_mask=None,
        training=None,
        remembered=None,
        memory_mask=None,
    ):
        dropout = None
        if training and self.dropout > 0:
            generator = self.dropout_layer.seed_generator
            dropout = ScoreDropout(self.dropout, generator.next() if can_draw() else generator)
        if self.segments is not None:
            self._check_bias(position_bias, hidden_states)
            context = self.over_segments(
                hidden_states,
                remembered,
                (memory_mask, padding_mask),
                self._terms_maker(position_bias, shared_positions),
                dropout,
            )
            return self.output_dense(ops.transpose(gated(self, context), (1, 2, 0, 3)))
        terms = self.terms(hidden_states, position_bias, shared_positions)
        is_real = self._over_keys(padding_mask, hidden_states)
        value = ops.transpose(self.value_dense(hidden_states), (2, 0, 1, 3))  # (h, b, s, d)
        of_globals = None
        if self._global_denses:
            of_globals = (
                self.terms(hidden_states, position_bias, shared_positions, of_globals=True),
                ops.transpose(self._global_denses[2](hidden_states), (2, 0, 1, 3)),
            )
        own = self.own_normalize
        context = attend(terms, value, is_real, dropout, self.visible, of_globals, own)
        context = gated(self, context)
        if is_real is not None:
            context = context * has_tokens(is_real, context.dtype)
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
        return self._terms_maker(position_bias, shared_positions)(query, key)

    def _terms_maker(self, position_bias, shared_positions):
        """Returns the function from queries and keys to terms."""
        positions = None if shared_positions is None else self.of_layer(shared_positions)
        return lambda query, key: self.terms_of(query, key, position_bias, positions)

    def _check_bias(self, position_bias, hidden_states):
        if position_bias is None:
            return
        if isinstance(position_bias, dict):
            if position_bias["bias"].shape[-1] == 0:
                return
            position_bias = position_bias["bias"]
        batch, length = hidden_states.shape[:2]
        length = length if self.segments is None else self.segments.whole
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
            "memory_length": self.memory_length,
            "segment_length": self.segment_length,
            "shared_heads": self.shared_heads and list(self.shared_heads),
        }
