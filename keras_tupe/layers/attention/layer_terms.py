"""The terms of an attention layer: those of its subclass, the position bias and the pattern."""

import keras
from keras import ops

from keras_tupe.layers.attention.core import whole_logits
from keras_tupe.layers.attention.heads import bias_of_heads, take_heads
from keras_tupe.layers.attention.position_terms import whole_bias
from keras_tupe.layers.attention.terms import Bias, Given, Pattern, Products


class HasTerms:
    """Part of an attention layer: terms of its logits, from queries, keys and positions."""

    def logit_terms(self, query, key, shared_positions):
        """Returns the terms of the logits, a list of `keras_tupe.layers.attention.terms.Term`.

        Args:
            query: `(num_heads, batch, length, key_dim)` in `logits_dtype`.
            key: the same.
            shared_positions: what `of_layer` makes of it: as in the call arguments, if it is not
                overridden.
        """
        raise NotImplementedError  # refused when the layer is made

    def of_layer(self, shared_positions):
        """Returns what `logit_terms` takes as `shared_positions`, as it is by default.

        A layer that makes tensors of positions alone, such as projections of a table, makes them
        here, so that text generation has them once and not for every token.

        Args:
            shared_positions: as in the call arguments, not `None`.
        """
        return shared_positions

    def positioned(self, rows, index, layer_positions):
        """Returns queries or keys with what their own positions do to each, here nothing.

        For layers that override `positioned_terms` too; the cache then holds such keys.

        Args:
            rows: `(num_heads, batch, count, key_dim)` in `logits_dtype`.
            index: position of the first of them, an integer or a scalar tensor.
            layer_positions: what `of_layer` returned for a whole sequence.
        """
        return rows

    def positioned_terms(self, query, key, layer_positions):
        """Returns `logit_terms` of queries and keys that `positioned` returned.

        Args:
            query, key: `(num_heads, batch, length, key_dim)` in `logits_dtype`.
            layer_positions: what `of_layer` returned.
        """
        return self.logit_terms(query, key, layer_positions)

    def own_heads(self, x, axis):
        """Returns a tensor that all layers share, of the layer's own heads.

        Args:
            x: tensor with an axis of the heads of the whole encoder.
            axis: that axis.
        """
        return take_heads(x, self.shared_heads, axis)

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

    def logits(self, query, key, position_bias, shared_positions):
        """Returns the attention logits `(batch, num_heads, length, length)`, all at once.

        Args:
            query: `(batch, length, num_heads, key_dim)` in `logits_dtype`.
            key: the same.
            position_bias: as in the call arguments, in `logits_dtype`, or `None`.
            shared_positions: as in the call arguments.
        """
        if shared_positions is not None:
            shared_positions = self.of_layer(shared_positions)
        query, key = (ops.transpose(x, (2, 0, 1, 3)) for x in (query, key))
        terms = _with_bias(self.logit_terms(query, key, shared_positions), position_bias)
        return ops.swapaxes(whole_logits(terms, ops.shape(query)[2]), 0, 1)

    def terms_of(self, query, key, position_bias, layer_positions, positioned=False):
        """Returns the terms of the logits of queries and keys of a whole sequence.

        Args:
            query, key: as of `logit_terms`.
            position_bias: as in the call arguments.
            layer_positions: what `of_layer` returned, or `None`.
            positioned: whether `positioned` returned queries and keys. Defaults to `False`.
        """
        if position_bias is not None:
            position_bias = bias_of_heads(position_bias, self.shared_heads)
            position_bias = keras.tree.map_structure(
                lambda x: ops.cast(x, self.logits_dtype), position_bias
            )
        if type(self).logits is not HasTerms.logits:
            if isinstance(position_bias, dict):
                position_bias = whole_bias(position_bias, ops.shape(key)[2])
            query, key = (ops.transpose(x, (1, 2, 0, 3)) for x in (query, key))
            logits = self.logits(query, key, position_bias, layer_positions)
            terms = [Given(ops.swapaxes(logits, 0, 1))]
        else:
            made = self.positioned_terms if positioned else self.logit_terms
            terms = _with_bias(made(query, key, layer_positions), position_bias)
        if self.visible is None:
            return terms
        return _with(terms, Pattern(self.visible, self.logits_dtype))


def _with_bias(terms, position_bias):
    return terms if position_bias is None else _with(terms, Bias(position_bias))


def _with(terms, bias):
    if len(terms) == 1 and isinstance(terms[0], Products):
        return [terms[0].with_bias(bias)]  # one op
    return [*terms, bias]
