"""[CLS] freed from position."""

import keras
from keras import ops

from keras_tupe.layers._parts import Configured, at_least_float32
from keras_tupe.layers.attention.position_terms import reset_parts


@keras.saving.register_keras_serializable(package="keras_tupe")
class ClsReset(Configured, keras.layers.Layer):
    """Frees [CLS] from position: one learned logit from it, one to it, per head.

    [CLS] is a summary slot and not a word at position 0, so a position bias would tie it to
    the first words. Apply this to a position bias before it is added to the content logits.

    Equation (Ke et al. 2021, eq. 9, the reset function):

        out[h, i, j] = theta_1[h]     if i = 0         ([CLS] looks at anything)
                       theta_2[h]     if i > 0, j = 0  (anything looks at [CLS])
                       bias[h, i, j]  otherwise

    where i is the query and j the key position, both from 0, and h the head. theta_1 is a constant
    of its row: it changes no scores and has no gradient, and is kept for parity with the paper.

    Differences from the source: without `theta` the layer owns a free pair per head, so that any
    bias can be reset; TUPE computes it from two learned vectors (Appendix B). The released code
    resets the absolute and the relative part one by one: use one `ClsReset` for each.

    Args:
        initializer: Keras initializer of the layer's own theta. Defaults to `"zeros"`.
        **kwargs: `name`, `dtype` and the other arguments of `keras.layers.Layer`.

    Call arguments:
        position_bias: logits `(1, num_heads, length, length)`; the answer is at least float32.
        theta: optional `(2, num_heads)`: theta_1 and theta_2. Without it the layer's own.

    Example:
        >>> tuple(ClsReset()(keras.random.normal((1, 12, 16, 16))).shape)
        (1, 12, 16, 16)
    """

    def __init__(self, initializer="zeros", **kwargs):
        # Without autocast a half-precision policy would round the incoming float32 logits.
        super().__init__(autocast=False, **kwargs)
        self.initializer = keras.initializers.get(initializer)
        self.theta = None

    def build(self, position_bias_shape, theta_shape=None):
        if position_bias_shape[-1] != position_bias_shape[-2]:
            raise ValueError(
                "`position_bias` must have one row and one column per token, with shape (1, "
                "num_heads, length, length). Pass the bias of a whole sequence. "
                f"Received: shape={tuple(position_bias_shape)}"
            )
        if theta_shape is None:
            shape = (2, position_bias_shape[1])
            self.theta = self.add_weight(shape, self.initializer, autocast=False, name="theta")

    def call(self, position_bias, theta=None):
        bias = ops.cast(position_bias, at_least_float32(self.compute_dtype))
        row, column = ops.unstack(ops.reshape(self._thetas(theta), (2, 1, -1, 1, 1)), 2)
        is_first = ops.equal(ops.arange(ops.shape(bias)[-1], dtype="int32"), 0)
        bias = ops.where(is_first, column, bias)
        return ops.where(ops.expand_dims(is_first, -1), row, bias)  # last: (0, 0) is the row's

    def reset_parts(self, parts, length, theta=None):
        """Returns the same for the `parts` of a bias of some `length`, with the call's `theta`."""
        return reset_parts(parts, self._thetas(theta), length)

    def _thetas(self, theta):
        theta = self.theta if theta is None else theta
        return ops.cast(theta, at_least_float32(self.compute_dtype))

    def compute_output_spec(self, position_bias, theta=None):
        return keras.KerasTensor(position_bias.shape, at_least_float32(self.compute_dtype))
