"""Learned vectors of distances."""

import keras
from keras import ops

from keras_tupe.layers._checks import check_positive_integers, checked_length
from keras_tupe.layers.abstract_position_tensors import AbstractPositionTensors


@keras.saving.register_keras_serializable(package="keras_tupe")
class RelativePositionTable(AbstractPositionTensors):
    """A learned vector or scalar per clipped distance, the a of relative position methods.

    Equation (Shaw et al. 2018, eq. 4; Huang et al. 2020, eqs. 8 and 12 to 16):

        a_{j - i} = table[clip(j - i, -k, k) + k]     signed
        a_{j - i} = table[min(|j - i|, k)]            unsigned

    and, with an untied [CLS], two vectors instead of a: one for all pairs with the query [CLS], one
    for the other pairs with the key [CLS].

    Differences from the source: the vectors of [CLS] are ours.

    Args:
        max_distance: clipping distance k, in tokens.
        num_heads: heads with a table of their own; 1 if they share one. Defaults to 1.
        width: size of a vector: the key dim of a head, or 1 for a scalar. Defaults to 1.
        signed: whether left and right differ. Defaults to `True`.
        clip: whether distances beyond k have the vector of k. Defaults to `True`; otherwise
            sequences longer than k + 1 are refused.
        untie_cls: whether [CLS] has vectors of its own. Defaults to `False`.
        initializer: Keras initializer. Defaults to a normal of deviation 0.02.
        **kwargs: as of `AbstractPositionTensors`, like the call arguments.

    Returns:
        Dictionary of tensors in at least float32: `distances`, `(2 k + 1, num_heads, width)`, row
        r for distance r - k, in both cases; and, with an untied [CLS], `cls`, `(2, num_heads,
        width)`, the factors of its row and of its column.

    Example:
        >>> table = RelativePositionTable(max_distance=8, num_heads=2, width=4)
        >>> tuple(table(keras.ops.zeros((1, 5, 8)))["distances"].shape)
        (17, 2, 4)
    """

    def __init__(
        self,
        max_distance,
        num_heads=1,
        width=1,
        signed=True,
        clip=True,
        untie_cls=False,
        initializer=None,
        **kwargs,
    ):
        super().__init__(initializer, **kwargs)
        check_positive_integers(max_distance=max_distance, num_heads=num_heads, width=width)
        self.max_distance, self.num_heads, self.width = max_distance, num_heads, width
        self.signed, self.clip, self.untie_cls = signed, clip, untie_cls
        self.max_sequence_length = None if clip else max_distance + 1

    def build(self, hidden_states_shape=None):
        rows = (2 if self.signed else 1) * self.max_distance + 1
        sizes = (self.num_heads, self.width)
        self.distance_embeddings = self.add_table("distance_embeddings", (rows, *sizes))
        if self.untie_cls:
            self.cls_embeddings = self.add_table("cls_embeddings", (2, *sizes))

    def rows(self):
        """Returns what a call does, for a text of any length."""
        distances = ops.cast(self.distance_embeddings, self.table_dtype)
        if not self.signed:
            distances = ops.concatenate([ops.flip(distances[1:], axis=0), distances], axis=0)
        own = {"cls": ops.cast(self.cls_embeddings, self.table_dtype)} if self.untie_cls else {}
        return {"distances": distances, **own}

    def tensors(self, length):
        return self.rows()

    def compute_output_spec(self, hidden_states):
        checked_length(hidden_states, self.max_sequence_length, self.name)
        rows = {"distances": 2 * self.max_distance + 1} | ({"cls": 2} if self.untie_cls else {})
        sizes, dtype = (self.num_heads, self.width), self.table_dtype
        return {name: keras.KerasTensor((count, *sizes), dtype) for name, count in rows.items()}
