"""Learned vectors of distances."""

import keras
from keras import ops

from keras_tupe.layers._checks import check_positive_integers, checked_length
from keras_tupe.layers._parts import Configured, at_least_float32, fresh, normal_unless


@keras.saving.register_keras_serializable(package="keras_tupe")
class RelativePositionTable(Configured, keras.layers.Layer):
    """A learned vector or scalar per clipped distance, the a of relative position methods.

    Equation (Shaw et al. 2018, eq. 4; Huang et al. 2020, eqs. 8 and 12 to 16):

        a_{j - i} = table[clip(j - i, -k, k) + k]     signed
        a_{j - i} = table[min(|j - i|, k)]            unsigned

    and, with an untied [CLS], two vectors of the same form instead of a: one for all pairs with
    the query [CLS], one for the other pairs with the key [CLS].

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
        **kwargs: `name`, `dtype` and the other arguments of `keras.layers.Layer`.

    Call arguments:
        hidden_states: `(batch, length, ...)`; only its length is used.

    Returns:
        Dictionary of tensors in at least float32: `distances`, `(2 k + 1, num_heads, width)`, row
        r for distance r - k, in both cases; and, with an untied [CLS], `cls`, `(2, num_heads,
        width)`, the factors of its row and of its column.

    Raises:
        ValueError: if a size is not a positive integer, or the length is known and above k + 1
            without clipping.

    Example:
        >>> table = RelativePositionTable(max_distance=8, num_heads=2, width=4)
        >>> tuple(table(keras.ops.zeros((1, 5, 8)))["distances"].shape)
        (17, 2, 4)

    References:
        Shaw, Uszkoreit, Vaswani. Self-Attention with Relative Position Representations. NAACL
        2018. https://arxiv.org/abs/1803.02155
        Huang et al. Improve Transformer Models with Better Relative Position Embeddings. Findings
        of EMNLP 2020. https://arxiv.org/abs/2009.13658
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
        super().__init__(autocast=False, **kwargs)
        check_positive_integers(max_distance=max_distance, num_heads=num_heads, width=width)
        self.max_distance = max_distance
        self.num_heads = num_heads
        self.width = width
        self.signed = signed
        self.clip = clip
        self.untie_cls = untie_cls
        self.initializer = normal_unless(initializer)

    def build(self, hidden_states_shape=None):
        rows = self.max_distance + 1 + (self.max_distance if self.signed else 0)
        self.distance_embeddings = self._weight("distance_embeddings", rows)
        self.cls_embeddings = self._weight("cls_embeddings", 2) if self.untie_cls else None

    def _weight(self, name, rows):
        return self.add_weight(
            shape=(rows, self.num_heads, self.width),
            initializer=fresh(self.initializer),
            autocast=False,
            name=name,
        )

    def call(self, hidden_states):
        self._check_length(hidden_states)
        return self.rows()

    def rows(self):
        """Returns what a call does, for a text of any length."""
        dtype = at_least_float32(self.compute_dtype)
        distances = ops.cast(self.distance_embeddings, dtype)
        if not self.signed:
            distances = ops.concatenate([ops.flip(distances[1:], axis=0), distances], axis=0)
        own = {"cls": ops.cast(self.cls_embeddings, dtype)} if self.untie_cls else {}
        return {"distances": distances, **own}

    def compute_output_spec(self, hidden_states):
        self._check_length(hidden_states)
        dtype = at_least_float32(self.compute_dtype)
        rows = {"distances": 2 * self.max_distance + 1, **({"cls": 2} if self.untie_cls else {})}
        sizes = (self.num_heads, self.width)
        return {name: keras.KerasTensor((count, *sizes), dtype) for name, count in rows.items()}

    def _check_length(self, hidden_states):
        checked_length(hidden_states, None if self.clip else self.max_distance + 1, self.name)
