"""A sum of position biases, with [CLS] reset or not."""

import json

import keras
from keras import ops

from keras_tupe._keras_private.layers import all_layers
from keras_tupe.layers._parts import at_least_float32, unbuilt_layer
from keras_tupe.layers.attention.core import in_blocks
from keras_tupe.layers.attention.position_terms import matrix_of_parts, sum_of_parts
from keras_tupe.layers.cls_reset import ClsReset

_PART_SHAPES = {}  # by the layers and the shape of their input


@keras.saving.register_keras_serializable(package="keras_tupe")
class CombinedPositionBias(keras.layers.Layer):
    """Adds position biases up and, if asked to, frees [CLS] from the sum.

    Equation (Ke et al. 2021, eqs. 8, 9 and 11):

        bias = reset_theta(part_1 + part_2 + ...)      with untie_cls=True
        bias = part_1 + part_2 + ...                   with untie_cls=False

    theta is the first part's where it has one (TUPE's Appendix B), and free scalars otherwise.

    Args:
        parts: non-empty list of layers, each hidden states -> position bias.
        untie_cls: whether [CLS] is freed from the sum. Defaults to `False`.
        **kwargs: `name`, `dtype` and the other arguments of `keras.layers.Layer`.

    Call arguments:
        hidden_states: `(batch, length, hidden_dim)`; only its length is used.
        as_parts: whether to return a dictionary for attention layers, in which long sequences have
            low-rank factors and values by distance in place of the bias. Defaults to `False`.

    Returns:
        Position bias, unitless, `(1, num_heads, length, length)`, in at least float32. As parts:
        `bias`, which is empty for sequences of more than 512 tokens, `query` and `key`,
        `(num_heads, length, rank)`, and `distances`, `(num_heads, 2 * length)`, whichever there
        are; the bias alone if a layer of `parts` has no method `bias_parts`.

    Masking: none; padding is masked later, in attention.

    Raises:
        ValueError: if `parts` is empty.

    Example:
        >>> from keras_tupe.layers import RelativeBucketBias
        >>> bias = CombinedPositionBias([RelativeBucketBias(num_heads=2)], untie_cls=True)
        >>> tuple(bias(keras.ops.zeros((3, 5, 8))).shape)
        (1, 2, 5, 5)

    References:
        Ke, He, Liu. Rethinking Positional Encoding in Language Pre-training. ICLR 2021.
        https://arxiv.org/abs/2006.15595
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

    @property
    def _computes_theta(self):
        return getattr(self.parts[0], "cls_theta", False)

    def build(self, hidden_states_shape):
        for part in self.parts:
            part.build(hidden_states_shape)
        if self.cls_reset is not None:
            shape = self._output_shape(hidden_states_shape)
            self.cls_reset.build(shape, (2, shape[1]) if self._computes_theta else None)

    def _output_shape(self, hidden_states_shape):
        hidden_states = keras.KerasTensor(hidden_states_shape, self.compute_dtype)
        return self.parts[0].compute_output_spec(hidden_states).shape

    @property
    def has_parts(self):
        """Whether the bias can be returned by its parts."""
        return all(getattr(part, "has_parts", hasattr(part, "bias_parts")) for part in self.parts)

    def bias_parts(self, hidden_states):
        """Returns the bias by its parts: `query` and `key`, and `distances`, as above.

        Args:
            hidden_states: as in the call arguments.
        """
        parts = sum_of_parts([part.bias_parts(hidden_states) for part in self.parts])
        if self.cls_reset is None:
            return parts
        return self.cls_reset.reset_parts(parts, ops.shape(hidden_states)[1], self._theta())

    def _theta(self):
        return self.parts[0].theta() if self._computes_theta else None

    def call(self, hidden_states, as_parts=False):
        if not as_parts or not self.has_parts:
            return self._bias(hidden_states)
        parts = self.bias_parts(hidden_states)
        if not in_blocks(hidden_states.shape[1]):
            return {"bias": matrix_of_parts(parts, ops.shape(hidden_states)[1]), **parts}
        heads = next(iter(parts.values())).shape[0]
        return {"bias": ops.zeros((1, heads, 0, 0), at_least_float32(self.compute_dtype)), **parts}

    def _bias(self, hidden_states):
        bias = sum(part(hidden_states) for part in self.parts)
        if self.cls_reset is None:
            return bias
        return self.cls_reset(bias, theta=self._theta())

    def compute_output_spec(self, hidden_states, as_parts=False):
        for part in self.parts:
            shape = part.compute_output_spec(hidden_states).shape
        bias = keras.KerasTensor(shape, at_least_float32(self.compute_dtype))
        if not as_parts or not self.has_parts:
            return bias
        length = hidden_states.shape[1]
        axes = {"query": length, "key": length, "distances": length and 2 * length}
        one = keras.KerasTensor((1, 1, hidden_states.shape[2]), hidden_states.dtype)
        shapes = self._part_shapes(one)  # of one token, whatever the length

        def spec(name):
            heads, _, *rest = shapes[name]
            return keras.KerasTensor((heads, axes[name], *rest), bias.dtype)

        return {"bias": bias, **{name: spec(name) for name in axes if name in shapes}}

    def _part_shapes(self, hidden_states):
        """Returns the shapes of the parts by name; the same layers are traced only once."""
        settings = json.dumps(self.get_config(), sort_keys=True, default=repr)
        classes = tuple(type(layer) for layer in all_layers(self))
        key = (settings, classes, hidden_states.shape, hidden_states.dtype)
        if key not in _PART_SHAPES:
            parts = super().compute_output_spec(hidden_states, as_parts=True)
            _PART_SHAPES[key] = {name: tuple(part.shape) for name, part in parts.items()}
        return _PART_SHAPES[key]

    def get_config(self):
        parts = [keras.saving.serialize_keras_object(part) for part in self.parts]
        return {**super().get_config(), "parts": parts, "untie_cls": self.untie_cls}

    @classmethod
    def from_config(cls, config):
        parts = [unbuilt_layer(part) for part in config["parts"]]
        return cls(**{**config, "parts": parts})
