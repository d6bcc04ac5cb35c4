"""A sum of position biases, with [CLS] reset or not."""

import keras

from keras_tupe.layers._parts import at_least_float32, unbuilt_layer
from keras_tupe.layers.cls_reset import ClsReset


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

    Returns:
        Position bias, unitless, `(1, num_heads, length, length)`, in at least float32.

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

    def call(self, hidden_states):
        bias = sum(part(hidden_states) for part in self.parts)
        if self.cls_reset is None:
            return bias
        return self.cls_reset(bias, theta=self.parts[0].theta() if self._computes_theta else None)

    def compute_output_spec(self, hidden_states):
        for part in self.parts:
            shape = part.compute_output_spec(hidden_states).shape
        return keras.KerasTensor(shape, at_least_float32(self.compute_dtype))

    def get_config(self):
        parts = [keras.saving.serialize_keras_object(part) for part in self.parts]
        return {**super().get_config(), "parts": parts, "untie_cls": self.untie_cls}

    @classmethod
    def from_config(cls, config):
        parts = [unbuilt_layer(part) for part in config["parts"]]
        return cls(**{**config, "parts": parts})
