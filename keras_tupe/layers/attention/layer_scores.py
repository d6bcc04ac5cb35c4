"""The scores of an attention layer: what its logits become."""

from keras import ops

from keras_tupe.layers.attention.core import scores
from keras_tupe.layers.attention.weighted_values import softmax


class HasScores:
    """Part of an attention layer: scores of logits, and those of a whole call."""

    def normalized(self, logits):
        """Returns the attention scores of logits, here their softmax over keys.

        An attention that overrides it makes all logits of a sequence at once, however long.

        Args:
            logits: `(num_heads, batch, rows, length)` in `logits_dtype`, of which those of keys
                that a query must not see are around -1e30, and must get zero.
        """
        return softmax(logits)

    @property
    def own_normalize(self):
        """The method `normalized` of a subclass that has its own, else `None`."""
        is_own = type(self).normalized is not HasScores.normalized
        return self.normalized if is_own else None

    def scores(self, hidden_states, position_bias=None, shared_positions=None, padding_mask=None):
        """Returns the attention scores `(batch, num_heads, length, length)` of a call.

        Args:
            hidden_states, position_bias, shared_positions, padding_mask: as in the call arguments.
        """
        if self.segments is not None:
            raise ValueError(
                "The scores of a layer with segments are no matrix of all pairs of a row. Use one "
                f"that attends to whole rows. Received: a layer with {self.segments}"
            )
        length = ops.shape(hidden_states)[1]
        terms = self.terms(hidden_states, position_bias, shared_positions)
        is_real = self._over_keys(padding_mask, hidden_states)
        found = scores(terms, length, is_real, self.own_normalize)
        if self._global_denses:
            count = self.visible.num_global
            terms = self.terms(hidden_states, position_bias, shared_positions, of_globals=True)
            own = scores(terms, length, is_real, self.own_normalize)
            found = ops.concatenate([own[:, :, :count], found[:, :, count:]], axis=2)
        if is_real is not None:
            found = found * has_tokens(is_real, found.dtype)
        return ops.swapaxes(found, 0, 1)

    def _over_keys(self, padding_mask, hidden_states):
        """Returns the mask as booleans `(1, batch, 1, length)`; a mask of another shape fails."""
        if padding_mask is None:
            return None
        batch, length = ops.shape(hidden_states)[:2]
        return ops.reshape(ops.cast(padding_mask, "bool"), (1, batch, 1, length))


def has_tokens(is_real, dtype):
    """Returns 1 for sequences with a token, 0 for others, `(1, batch, 1, 1)`."""
    return ops.cast(ops.any(is_real, axis=-1, keepdims=True), dtype)
