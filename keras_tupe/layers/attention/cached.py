"""Attention of new tokens to those before them, whose keys and values are kept.

A cache holds the projected keys and values of all positions of a sequence, those to come too, so
that its shape stays: a pair of tensors `(heads, batch, length, key_dim)`. New tokens are a few rows
of the logits of the whole sequence. So the terms are those of the whole sequence, made of all keys
and of queries that are zeros but for the new ones, and of each the new rows are cut out: whatever
terms a method has, the answers are those of a call on all tokens.
"""

from keras import ops

from keras_tupe.layers.attention.row_block import RowBlock
from keras_tupe.layers.attention.weighted_values import softmax


class KeepsKeys:
    """Part of an attention layer: it keeps keys and values, and new tokens attend to them.

    Dropout is none, and there is no padding: every token before a new one is seen where the
    attention pattern, which is causal, says so.
    """

    def of_layer(self, shared_positions):
        """Returns what `logit_terms` takes as `shared_positions`: the tensors of this layer.

        A layer that makes tensors of positions alone makes them here, once for all steps.

        Args:
            shared_positions: as in the call arguments.
        """
        return shared_positions

    def prefill(self, hidden_states, position_bias=None, shared_positions=None):
        """Returns the answer of a call without dropout, and its cache.

        Args:
            hidden_states, position_bias, shared_positions: as in the call arguments.

        Returns:
            The hidden states, and a pair: keys and values, each
            `(num_heads, batch, length, key_dim)` in the compute dtype.
        """
        x = self(hidden_states, position_bias=position_bias, shared_positions=shared_positions)
        return x, tuple(_heads_first(dense(hidden_states)) for dense in self._kept)

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
        cache = tuple(
            ops.slice_update(old, (0, 0, index, 0), _heads_first(dense(hidden_states)))
            for old, dense in zip(cache, self._kept, strict=True)
        )
        query = ops.cast(_heads_first(self.query_dense(hidden_states)), self.logits_dtype)
        key = ops.cast(cache[0], self.logits_dtype)
        whole = ops.slice_update(ops.zeros_like(key), (0, 0, index, 0), query)
        terms = self.terms_of(whole, key, position_bias, layer_positions)
        context = attend_rows(terms, cache[1], index, (whole, query), self.visible)
        return self.output_dense(ops.transpose(context, (1, 2, 0, 3))), cache

    @property
    def _kept(self):
        return self.key_dense, self.value_dense


def _heads_first(x):
    return ops.transpose(x, (2, 0, 1, 3))  # (b, t, h, d) -> (h, b, t, d)


def attend_rows(terms, value, index, known, visible=None):
    """Returns the sums of values of a few rows, `(heads, batch, rows, key_dim)`.

    Args:
        terms: list of `Term`, of the whole sequence.
        value: `(heads, batch, length, key_dim)`.
        index: first of the rows, int32 scalar tensor.
        known: a tensor of the terms, and its rows, which then need not be cut out.
        visible: the `Visible` of the layer: what lies outside of its window is left out.
    """
    size, length = ops.shape(known[1])[2], ops.shape(value)[2]
    first, columns = _columns(visible, index, size, length)
    i = ops.expand_dims(ops.arange(size, dtype="int32") + index, 1)
    j = ops.expand_dims(ops.arange(columns, dtype="int32") + first, 0)

    def cut(x, start, count):
        if x is known[0] and start is index:
            return known[1]
        return x if count is length else _cut(x, start, count)

    logits = None
    for term in terms:
        rows = [cut(x, index, size) for x in term.rows]
        keys = [cut(x, first, columns) for x in term.keys]
        found = term.on_pairs(logits, rows, keys, term.whole, i, j)
        if found is NotImplemented:
            found = _on_block(term, logits, index, size, length)
            found = found if columns is length else _columns_of(found, first, columns)
        logits = found
    scores = ops.cast(softmax(logits), value.dtype)
    return ops.matmul(scores, cut(value, first, columns))


def _columns(visible, index, size, length):
    """Returns the first of the keys that the rows see, and how many these are."""
    if visible is None or not visible.has_window or visible.num_global:
        return 0, length
    columns = visible.left + size + visible.right
    if columns >= length:
        return 0, length
    return ops.clip(index - visible.left, 0, length - columns), columns


def _on_block(term, logits, index, size, length):
    """Returns the logits with a term that knows blocks alone."""
    term, block = term.in_rows().in_loop(length, size), RowBlock(index, size, length)
    rows = [_cut(x, index, size) for x in term.rows]
    return term.on(logits, rows, term.keys, term.whole, block)


def _cut(x, start, count):
    heads, batch, _, width = ops.shape(x)
    return ops.slice(x, (0, 0, start, 0), (heads, batch, count, width))


def _columns_of(x, first, columns):
    heads, batch, rows, _ = ops.shape(x)
    return ops.slice(x, (0, 0, 0, first), (heads, batch, rows, columns))
