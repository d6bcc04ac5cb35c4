"""A sum of position biases, with [CLS] reset or not."""

import keras
from keras import ops

from keras_tupe.layers._parts import Configured, at_least_float32
from keras_tupe.layers.attention.core import in_blocks
from keras_tupe.layers.attention.position_terms import matrix_of_parts, sum_of_parts
from keras_tupe.layers.cls_reset import ClsReset


@keras.saving.register_keras_serializable(package="keras_tupe")
class CombinedPositionBias(Configured, keras.layers.Layer):
    """Adds position biases up and, if asked to, frees [CLS] from the sum.

    Equation (Ke et al. 2021, eqs. 8, 9 and 11):

        bias = reset_theta(part_1 + part_2 + ...)      with untie_cls=True
        bias = part_1 + part_2 + ...                   with untie_cls=False

    theta is the first part's where it has one (TUPE's Appendix B), and free scalars otherwise.

    Args:
        parts: non-empty list of `PositionBias`, of these, or of any layers that return such a bias.
        untie_cls: whether [CLS] is freed from the sum. Defaults to `False`.
        **kwargs: `name`, `dtype` and the other arguments of `keras.layers.Layer`.

    Call arguments:
        hidden_states: `(batch, length, hidden_dim)`; only its length is used.
        as_parts: whether to return a dictionary for attention layers, in which long sequences have
            low-rank factors and values by distance in place of the bias. Defaults to `False`.

    Returns:
        Position bias, unitless, `(1, num_heads, length, length)`, in at least float32. As parts:
        `bias`, which is empty for sequences of more than 512 tokens, and what `PositionBias.parts`
        tells of; the bias alone if a layer of `parts` makes a matrix.

    Example:
        >>> bias = CombinedPositionBias([keras_tupe.layers.RelativeBucketBias(num_heads=2)])
        >>> tuple(bias(ops.zeros((3, 5, 8))).shape)
        (1, 2, 5, 5)
    """

    def __init__(self, parts, untie_cls=False, **kwargs):
        super().__init__(autocast=False, **kwargs)
        if not parts:
            raise ValueError(
                "`parts` must hold at least one position bias layer. Received: parts=[]"
            )
        self.parts = list(parts)
        self.untie_cls = untie_cls
        self.cls_reset = None
        if untie_cls:
            self.cls_reset = ClsReset(name="cls_reset", dtype=self.dtype_policy)
        self._has_theta = getattr(self.parts[0], "cls_theta", False)

    @property
    def kinds(self):
        """What the sum is made of, see `PositionBias`."""
        kinds = {kind for part in self.parts for kind in getattr(part, "kinds", ("matrix",))}
        if "matrix" in kinds:
            return ("matrix",)
        kinds |= {"query", "key"} if self.untie_cls else set()
        return tuple(x for x in ("query", "key", "distances") if x in kinds)

    @property
    def rank(self):
        """Last axis of `query` and `key`; `None` if a part does not tell it."""
        ranks = [part.rank for part in self.parts if "query" in part.kinds]
        return None if None in ranks else sum(ranks) + (2 if self.untie_cls else 0)

    def build(self, hidden_states_shape):
        for part in self.parts:
            part.build(hidden_states_shape)
        if self.cls_reset is not None:
            hidden_states = keras.KerasTensor(hidden_states_shape, self.compute_dtype)
            shape = self.parts[0].compute_output_spec(hidden_states).shape
            self.cls_reset.build(shape, (2, shape[1]) if self._has_theta else None)

    def _theta(self):
        return self.parts[0].theta() if self._has_theta else None

    def bias_parts(self, hidden_states):
        """Returns what the sum is made of for the length of `hidden_states`, if not a matrix."""
        parts = sum_of_parts([part.bias_parts(hidden_states) for part in self.parts])
        if self.cls_reset is None:
            return parts
        return self.cls_reset.reset_parts(parts, ops.shape(hidden_states)[1], self._theta())

    def call(self, hidden_states, as_parts=False):
        if as_parts and self.kinds != ("matrix",):
            parts = self.bias_parts(hidden_states)
            if not in_blocks(hidden_states.shape[1]):
                return {"bias": matrix_of_parts(parts, ops.shape(hidden_states)[1]), **parts}
            shape = (1, next(iter(parts.values())).shape[0], 0, 0)
            return {"bias": ops.zeros(shape, at_least_float32(self.compute_dtype)), **parts}
        bias = sum(part(hidden_states) for part in self.parts)
        return bias if self.cls_reset is None else self.cls_reset(bias, theta=self._theta())

    def compute_output_spec(self, hidden_states, as_parts=False):
        shape = [part.compute_output_spec(hidden_states).shape for part in self.parts][-1]
        dtype = at_least_float32(self.compute_dtype)
        bias = keras.KerasTensor(shape, dtype)
        if not as_parts or self.kinds == ("matrix",):
            return bias
        heads, length = shape[1:3]
        factors, distances = (heads, length, self.rank), (heads, length and 2 * length)
        shapes = {"query": factors, "key": factors, "distances": distances}
        return {"bias": bias, **{x: keras.KerasTensor(shapes[x], dtype) for x in self.kinds}}
