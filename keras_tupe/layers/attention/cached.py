"""Attention of new tokens to those before them, whose keys and values are kept.

A cache holds the projected keys and values of all positions of a sequence, those to come too, so
that its shape stays: a pair of tensors `(heads, batch, length, key_dim)`. New tokens are a few rows
of the logits of the whole sequence. So the terms are those of the whole sequence, made of all keys
and of queries that are zeros but for the new ones, and of each the new rows are cut out: whatever
terms a method has, the answers are those of a call on all tokens.

With segments, the sequence is the memory and the segment of the new token: these are cut out of the
cache, which begins with an empty memory and ends with whole segments.
"""

from keras import ops

from keras_tupe.layers._parts import starts
from keras_tupe.layers.attention.masks import key_mask
from keras_tupe.layers.attention.pairs import cut, pair_logits
from keras_tupe.layers.attention.term import Term
from keras_tupe.layers.attention.weighted_values import softmax


class KeepsKeys:
    """Part of an attention layer: it keeps keys and values, and new tokens attend to them.

    Dropout is none, and there is no padding: every token before a new one is seen where the
    attention pattern, which is causal, says so.
    """

    def prefill(self, hidden_states, position_bias=None, shared_positions=None):
        """Returns the answer of a call without dropout, and its cache.

        Args:
            hidden_states, position_bias, shared_positions: as in the call arguments.

        Returns:
            The hidden states, and a pair: keys and values, each
            `(num_heads, batch, length, key_dim)` in the compute dtype.
        """
        x = self(hidden_states, position_bias=position_bias, shared_positions=shared_positions)
        positions = None if shared_positions is None else self.of_layer(shared_positions)
        return x, self._kept(hidden_states, 0, positions)

    def step(self, hidden_states, cache, index, position_bias=None, layer_positions=None):
        """Returns the answer for new tokens, and the cache with their keys and values.

        Args:
            hidden_states: those of the new tokens, `(batch, count, hidden_dim)`.
            cache: keys and values of all positions, each `(num_heads, batch, length, key_dim)`;
                what is there from `index` on does not matter.
            index: position of the first of the new tokens, int32 scalar tensor.
            position_bias: that of the whole sequence, as in the call arguments.
            layer_positions: what `of_layer` returned for the whole sequence, or `None`.

        Returns:
            Hidden states `(batch, count, hidden_dim)`, and the cache.
        """
        if self.segments is not None:
            return self._step_of_segment(
                hidden_states, cache, index, (position_bias, layer_positions)
            )
        cache = tuple(
            ops.slice_update(old, starts(0, 0, index, 0), new)
            for old, new in zip(
                cache, self._kept(hidden_states, index, layer_positions), strict=True
            )
        )
        query = ops.cast(_heads_first(self.query_dense(hidden_states)), self.logits_dtype)
        query = self.positioned(query, index, layer_positions)
        key = ops.cast(cache[0], self.logits_dtype)
        whole = ops.slice_update(ops.zeros_like(key), starts(0, 0, index, 0), query)
        terms = self.terms_of(whole, key, position_bias, layer_positions, positioned=True)
        context = attend_rows(
            terms, cache[1], index, (whole, query), self.visible, self.own_normalize
        )
        return self.output_dense(ops.transpose(context, (1, 2, 0, 3))), cache

    def cache_of(self, kept, length):
        """Returns the cache of a sequence from that of its first tokens.

        Args:
            kept: what `prefill` returned beside hidden states.
            length: tokens of the whole sequence, an integer.
        """
        before, size = 0, length
        if self.segments is not None:
            before = self.segments.memory_length
            size = self.segments.count(length) * self.segments.length
        return tuple(
            ops.pad(x, ((0, 0), (0, 0), (before, size - x.shape[2]), (0, 0))) for x in kept
        )

    def _step_of_segment(self, hidden_states, cache, index, positions):
        """As `step`, of one new token, in the frame of its memory and segment."""
        if hidden_states.shape[1] != 1:
            raise ValueError(
                "A layer with segments takes one new token at a time. Received: "
                f"{hidden_states.shape[1]} tokens"
            )
        segments = self.segments
        first = index // segments.length * segments.length  # of the segment; of the frame, in there
        row = segments.memory_length + index - first
        at = starts(0, 0, index + segments.memory_length, 0)
        new = self._kept(hidden_states, index, None)
        cache = tuple(ops.slice_update(old, at, x) for old, x in zip(cache, new, strict=True))
        key, value = (cut(x, (first, segments.whole)) for x in cache)
        query = ops.cast(_heads_first(self.query_dense(hidden_states)), self.logits_dtype)
        key = ops.cast(key, self.logits_dtype)
        whole = ops.slice_update(ops.zeros_like(key), starts(0, 0, row, 0), query)
        terms = self.terms_of(whole, key, *positions)
        is_real = ops.arange(segments.whole, dtype="int32") >= segments.memory_length - first
        mask = key_mask(ops.reshape(is_real, (1, 1, 1, -1)), self.logits_dtype)
        context = attend_rows(
            terms, value, row, (whole, query), normalize=self.own_normalize, mask=mask
        )
        return self.output_dense(ops.transpose(context, (1, 2, 0, 3))), cache

    def _kept(self, hidden_states, index, layer_positions):
        """Returns the keys and values that a cache holds of some tokens."""
        key, value = (
            _heads_first(dense(hidden_states)) for dense in (self.key_dense, self.value_dense)
        )
        key = ops.cast(key, self.logits_dtype)
        if self.segments is None:  # else a key has another position in each frame
            key = self.positioned(key, index, layer_positions)
        return ops.cast(key, value.dtype), value


def _heads_first(x):
    return ops.transpose(x, (2, 0, 1, 3))  # (b, t, h, d) -> (h, b, t, d)


def attend_rows(terms, value, index, known, visible=None, normalize=None, mask=None):
    """Returns the sums of values of a few rows, `(heads, batch, rows, key_dim)`.

    Args:
        terms: list of `Term`, of the whole sequence.
        value: `(heads, batch, length, key_dim)`.
        index: first of the rows, int32 scalar tensor.
        known: a tensor of the terms, and its rows, which then need not be cut out.
        visible: the `Visible` of the layer: what lies outside of its window is left out.
        normalize: as in `core.attend`.
        mask: what is added to the logits of all keys, `(1, 1, 1, length)`, or `None`.
    """
    size, length = ops.shape(known[1])[2], ops.shape(value)[2]
    columns = _columns(terms, visible, index, size, length)
    logits = pair_logits(terms, (index, size), columns, length, known)
    logits = logits if mask is None else logits + mask
    scores = ops.cast((normalize or softmax)(logits), value.dtype)
    return ops.matmul(scores, value if columns[1] is length else cut(value, columns))


def _columns(terms, visible, index, size, length):
    """Returns the first of the keys that the rows see, and how many these are."""
    has_form = all(type(term).on_pairs is not Term.on_pairs for term in terms)
    if visible is None or not visible.has_window or visible.num_global or not has_form:
        return 0, length
    columns = visible.left + size + visible.right
    if columns >= length:
        return 0, length
    return ops.clip(index - visible.left, 0, length - columns), columns
