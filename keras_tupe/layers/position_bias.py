"""The base of position biases."""

import keras
from keras import ops

from keras_tupe import check
from keras_tupe.layers._checks import checked_length
from keras_tupe.layers.abstract_position_tensors import AbstractPositionTensors
from keras_tupe.layers.attention.position_terms import matrix_of_parts


class PositionBias(AbstractPositionTensors):
    """Base of terms of positions alone, made once per forward pass and shared by all blocks.

    A subclass says in `kinds` what its bias is made of, and gives it by `parts(length)`:

        bias[h, i, j] = query[h, i] . key[h, j] + distances[h, length - 1 + j - i]

    or a `matrix` of all pairs. From factors and distances attention makes the bias of long texts in
    blocks, and never all of it. Padding is masked later, in attention.

    Attributes:
        kinds: `"query"` and `"key"`, `"distances"`, or both; or `"matrix"`.
        rank: last axis of `query` and `key`.
        num_outputs: number of heads that there is a bias of.

    Args:
        num_heads: number of attention heads.
        heads: numbers, from 0 on, of the heads that were not removed. Defaults to `None`: all.
        initializer, **kwargs: as of `AbstractPositionTensors`.

    Call arguments:
        hidden_states: `(batch, length, hidden_dim)`; only its length is used.

    Returns:
        Position bias, unitless, `(1, num_outputs, length, length)`, in at least float32.

    Example:
        >>> class Slope(PositionBias):
        ...     def parts(self, length):
        ...         distance = ops.cast(ops.abs(self.offsets(length)), self.table_dtype)
        ...         return {"distances": ops.stack([-distance] * self.num_heads)}
        >>> tuple(Slope(num_heads=2)(ops.zeros((3, 5, 8))).shape)
        (1, 2, 5, 5)
    """

    kinds = ("distances",)
    rank = None

    def __init__(self, num_heads, initializer="zeros", heads=None, **kwargs):
        super().__init__(initializer, **kwargs)
        check.integer("num_heads", num_heads)
        wanted = range(num_heads) if heads is None else heads
        if not all(check.is_integer(head) and 0 <= head < num_heads for head in wanted):
            raise ValueError(
                f"`heads` must be numbers of heads, from 0 to {num_heads - 1}. "
                f"Received: heads={heads!r}"
            )
        self.num_heads = num_heads
        self.heads = None if heads is None else list(heads)
        self.num_outputs = len(wanted)

    def offsets(self, length):
        """Returns j - i for each entry of `distances`, int32 `(2 * length,)`."""
        return ops.arange(2 * length, dtype="int32") - (length - 1)

    def parts(self, length):
        """Returns what the bias is made of for a `length`, an integer or a scalar tensor.

        That is a dictionary of tensors of `table_dtype` by the names in `kinds`: `query` and `key`,
        `(num_outputs, length, rank)`; `distances`, `(num_outputs, 2 * length)`, whose last entry is
        not read; `matrix`, `(num_outputs, length, length)`.
        """
        raise NotImplementedError(
            f"A subclass must define `parts(length)`: add it. Received: {type(self).__name__}"
        )

    def bias_parts(self, hidden_states):
        """Returns the `parts` for the length of `hidden_states`, which is checked."""
        return self.parts(checked_length(hidden_states, self.max_sequence_length, self.name))

    def tensors(self, length):
        return matrix_of_parts(self.parts(length), length)

    def compute_output_spec(self, hidden_states):
        checked_length(hidden_states, self.max_sequence_length, self.name)
        length = hidden_states.shape[1]
        return keras.KerasTensor((1, self.num_outputs, length, length), self.table_dtype)
