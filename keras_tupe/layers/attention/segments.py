"""Attention of the segments of a row to themselves and to a memory of the tokens before them.

A row is cut into segments, which stand beside each other in the batch, `(batch * segments, ...)`.
The keys of a segment are those of its memory and its own; its queries are the last rows of the
logits of memory and segment together. So the terms are those of a sequence of that length, whatever
terms a method has, and what they cost grows with the length of the row, not with its square.
"""

import dataclasses

from keras import ops

from keras_tupe.layers._checks import check_positive_integers, is_integer
from keras_tupe.layers.attention.core import attend_last


@dataclasses.dataclass(frozen=True)
class Segments:
    """How a row is cut: segments of `length` tokens, each with `memory_length` tokens before it.

    Attributes:
        memory_length: tokens of a memory M, 0 for none.
        length: tokens of a segment n, at least 1.
    """

    memory_length: int
    length: int

    @property
    def whole(self):
        """Tokens of memory and segment together."""
        return self.memory_length + self.length

    def count(self, length):
        """Returns the number of segments of a row; the last one may be filled up.

        Args:
            length: tokens of a row, an integer or a scalar tensor.
        """
        return (length + self.length - 1) // self.length

    def cut(self, x):
        """Returns the segments of rows, `(batch * segments, n, ...)`, the last filled with zeros.

        Args:
            x: `(batch, length, ...)`.
        """
        x = self._filled(x)
        return ops.reshape(x, (-1, self.length, *ops.shape(x)[2:]))

    def memories(self, x):
        """Returns the M tokens before each segment, `(batch * segments, M, ...)`.

        Args:
            x: `(batch, M + length, ...)`: those before the first segment, then the row.
        """
        batch, length, *rest = ops.shape(x)
        size, count = self.length, self.count(length - self.memory_length)
        pieces = -(-self.memory_length // size)
        # segment s begins in x at s * size + M, and its memory at s * size
        blocks = count + pieces - 1
        x = self._filled(x)
        x = ops.slice(x, [0] * len(x.shape), (batch, blocks * size, *rest))
        x = ops.reshape(x, (batch, blocks, size, *rest))
        none = [0] * len(rest)
        moved = [
            ops.slice(x, (0, piece, 0, *none), (batch, count, size, *rest))
            for piece in range(pieces)
        ]
        x = ops.concatenate(moved, axis=2) if pieces > 1 else moved[0]
        x = ops.slice(x, (0, 0, 0, *none), (batch, count, self.memory_length, *rest))
        return ops.reshape(x, (-1, self.memory_length, *rest))

    def joined(self, x, batch, length):
        """Returns the rows of segments, `(batch, length, ...)`.

        Args:
            x: `(batch * segments, n, ...)`.
            batch: rows of the batch, an integer or a scalar tensor.
            length: tokens of a row, the same.
        """
        rest = ops.shape(x)[2:]
        x = ops.reshape(x, (batch, -1, *rest))
        return ops.slice(x, [0] * len(x.shape), (batch, length, *rest))

    def _filled(self, x):
        length = ops.shape(x)[1]
        more = self.count(length) * self.length - length
        if isinstance(more, int) and not more:
            return x
        return ops.pad(x, ((0, 0), (0, more), *[(0, 0)] * (len(x.shape) - 2)))


def segments_of(memory_length, segment_length, visible):
    """Returns the `Segments` of a layer; `None` where a row is attended to as a whole.

    Args:
        memory_length: tokens of a memory, 0 for none.
        segment_length: tokens of a segment, `None` for as many as of the memory.
        visible: the `Visible` of the layer, or `None` where all tokens see all.

    Raises:
        ValueError: if a length is no integer or impossible, or tokens see later ones or the
            beginning of a row.
    """
    if not is_integer(memory_length) or memory_length < 0:
        raise ValueError(
            "`memory_length` must be an integer >= 0, where 0 means no memory. "
            f"Received: memory_length={memory_length!r}"
        )
    if segment_length is not None:
        check_positive_integers(segment_length=segment_length)
    if not memory_length and segment_length is None:
        return None
    if visible is None or not visible.is_causal or visible.num_global or visible.also:
        raise ValueError(
            "Segments with a memory need an attention pattern in which no token sees later ones, "
            "and what it sees depends on the distance alone, such as 'causal', or "
            "'sliding_window' with causal=True and no global tokens. Received: another pattern, "
            f"memory_length={memory_length}, segment_length={segment_length}"
        )
    return Segments(int(memory_length), int(segment_length or memory_length))


class RemembersSegments:
    """Part of an attention layer: segments attend to the tokens before them too."""

    def over_segments(self, hidden_states, remembered, masks, terms, dropout):
        """Returns the sums of values, `(num_heads, batch, length, key_dim)`.

        Args:
            hidden_states: `(batch, length, hidden_dim)`.
            remembered: the memory before the first segment and the same hidden states, without
                gradient, `(batch, memory_length + length, hidden_dim)`; `None` for no memory there.
            masks: pair of the mask of the memory before the first segment and the padding mask,
                integers or booleans `(batch, memory_length)` and `(batch, length)`; each `None`
                for none.
            terms: function of queries and keys of memory and segment, both
                `(num_heads, batch * segments, memory_length + segment_length, key_dim)`, to a list
                of `Term`.
            dropout: a `ScoreDropout`, or `None`.
        """
        segments = self.segments
        batch, length = ops.shape(hidden_states)[:2]
        if remembered is None and segments.memory_length:
            sides = ((0, 0), (segments.memory_length, 0), (0, 0))
            remembered = ops.pad(ops.stop_gradient(hidden_states), sides)
        query, key, value = (
            ops.transpose(x, (2, 0, 1, 3))
            for x in (
                self._before_nothing(segments.cut(self.query_dense(hidden_states))),
                *(
                    self._behind_memory(dense, hidden_states, remembered)
                    for dense in (self.key_dense, self.value_dense)
                ),
            )
        )
        is_real = self._seen(batch, length, *masks)
        query, key = (ops.cast(x, self.logits_dtype) for x in (query, key))
        of_segments = (terms(query, key), value, segments.memory_length, is_real)
        context = attend_last(*of_segments, dropout, self.own_normalize)  # (h, b * segments, n, d)
        some = ops.any(is_real, axis=-1, keepdims=True)
        context = ops.transpose(context * ops.cast(some, context.dtype), (1, 2, 0, 3))
        return ops.transpose(segments.joined(context, batch, length), (2, 0, 1, 3))

    def _before_nothing(self, x):
        """Returns queries with zeros in the place of the memory, which asks nothing."""
        return ops.pad(x, ((0, 0), (self.segments.memory_length, 0), (0, 0), (0, 0)))

    def _behind_memory(self, dense, hidden_states, remembered):
        """Returns keys or values of memory and segment; the gradient ends at what is remembered."""
        own = self.segments.cut(dense(hidden_states))
        if not self.segments.memory_length:
            return own
        return ops.concatenate([self.segments.memories(dense(remembered)), own], axis=1)

    def _seen(self, batch, length, memory_mask, padding_mask):
        """Returns which keys are tokens, booleans `(1, batch * segments, 1, M + n)`."""
        mask = ops.ones((batch, length)) if padding_mask is None else padding_mask
        mask = ops.cast(ops.cast(mask, "bool"), "int32")
        seen = self.segments.cut(mask)
        if self.segments.memory_length:
            before = (batch, self.segments.memory_length)
            before = ops.zeros(before) if memory_mask is None else memory_mask
            before = ops.cast(ops.cast(before, "bool"), "int32")
            memories = self.segments.memories(ops.concatenate([before, mask], axis=1))
            seen = ops.concatenate([memories, seen], axis=1)
        return ops.expand_dims(ops.expand_dims(ops.cast(seen, "bool"), 1), 0)
