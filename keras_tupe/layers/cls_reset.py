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

    where i is the query and j the key position, both from 0, and h the head.

    Differences from the source: without `theta` the layer owns a free scalar pair per head, so that
    any bias can be reset. TUPE computes the pair from two learned vectors (its Appendix B) and
    passes it as `theta`. The released code resets the absolute and the relative part one by
    one: use one `ClsReset` for each.

    Args:
        initializer: Keras initializer of the layer's own theta. Defaults to `"zeros"`.
        **kwargs: `name`, `dtype` and the other arguments of `keras.layers.Layer`.

    Call arguments:
        position_bias: logits, unitless, `(1, num_heads, length, length)`.
        theta: optional `(2, num_heads)`: theta_1 and theta_2. Without it the layer's own.

    Returns:
        Tensor of the shape of `position_bias`, in at least float32.

    Raises:
        ValueError: if `position_bias` is not square in its last two axes.

    Notes:
        Adding one constant to a whole row does not change a softmax, so theta_1 has no
        effect on the scores and no gradient. It is kept for parity with the paper.

    Example:
        >>> bias = keras.random.normal((1, 12, 16, 16))
        >>> tuple(ClsReset()(bias).shape)
        (1, 12, 16, 16)

    References:
        Ke, He, Liu. Rethinking Positional Encoding in Language Pre-training. ICLR 2021.
        https://arxiv.org/abs/2006.15595
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
            self.theta = self.add_weight(
                shape=(2, position_bias_shape[1]),
                initializer=self.initializer,
                autocast=False,
                name="theta",
            )

    def call(self, position_bias, theta=None):
        dtype = at_least_float32(self.compute_dtype)
        bias = ops.cast(position_bias, dtype)
        theta = ops.cast(self.theta if theta is None else theta, dtype)
        row, column = ops.split(ops.reshape(theta, (2, 1, -1, 1, 1)), 2, axis=0)
        return replace_cls(bias, ops.squeeze(row, 0), ops.squeeze(column, 0))

    def reset_parts(self, parts, length, theta=None):
        """Returns the same for the `parts` of a bias of some `length`, with the call's `theta`."""
        theta = self.theta if theta is None else theta
        return reset_parts(parts, ops.cast(theta, at_least_float32(self.compute_dtype)), length)

    def compute_output_spec(self, position_bias, theta=None):
        return keras.KerasTensor(position_bias.shape, at_least_float32(self.compute_dtype))


def replace_cls(logits, row, column):
    """Returns logits with row 0 replaced by `row` and the rest of column 0 by `column`."""
    is_first = ops.equal(ops.arange(ops.shape(logits)[-1], dtype="int32"), 0)
    logits = ops.where(is_first, column, logits)
    return ops.where(ops.expand_dims(is_first, -1), row, logits)  # last: (0, 0) is the row's
