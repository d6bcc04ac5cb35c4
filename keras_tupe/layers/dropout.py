"""Dropout whose seed generator can be replaced."""

import keras
from keras import ops

from keras_tupe.layers._parts import Configured
from keras_tupe.layers._tracing import fused, has_own_gradients
from keras_tupe.layers.attention.random_bits import can_draw, keep_mask


@keras.saving.register_keras_serializable(package="keras_tupe")
class Dropout(Configured, keras.layers.Layer):
    """Inverted dropout with a seed generator that may be replaced after construction.

    Under a `tf.distribute` strategy every replica draws the same mask from a stock
    `keras.layers.Dropout`, whose generator's state is mirrored and cannot be replaced. Here
    `seed_generator` is an ordinary attribute until the layer is first called.

    Equation (Srivastava et al. 2014):

        out = x * keep / (1 - rate),  keep ~ Bernoulli(1 - rate)

    TensorFlow and JAX round the rate to a multiple of 2**-32 and draw bits by counter, so that the
    backward pass finds them again.

    Args:
        rate: share of elements set to zero, in [0, 1).
        seed: optional integer seed of the generator.
        **kwargs: `name`, `dtype` and the other arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: tensor of any shape.
        training: whether to drop; the identity otherwise.

    Example:
        >>> tuple(Dropout(0.5)(np.ones((2, 3)), training=False).shape)
        (2, 3)
    """

    def __init__(self, rate, seed=None, **kwargs):
        super().__init__(**kwargs)
        if isinstance(rate, bool) or not isinstance(rate, (int, float)) or not 0 <= rate < 1:
            raise ValueError(
                f"`rate`, the share to drop, must be a number in [0, 1). Received: rate={rate!r}"
            )
        self.rate, self.seed = rate, seed
        if rate > 0:
            self.seed_generator = keras.random.SeedGenerator(seed)
        self.supports_masking = True
        self.built = True  # it has no weights; Keras quantizes built layers alone

    def call(self, inputs, training=False):
        if not training or self.rate == 0:
            return inputs
        if not can_draw():
            return keras.random.dropout(inputs, self.rate, seed=self.seed_generator)
        dropped = _dropped_again if has_own_gradients(training) else _dropped
        return dropped(inputs, self.seed_generator.next(), self.rate)

    def compute_output_shape(self, input_shape):
        return input_shape


def _dropped(inputs, seed, rate):
    shape = ops.shape(inputs)
    rows = (1,) * (2 - len(shape)) + tuple(shape)
    keep = ops.cast(ops.reshape(keep_mask(rows, rate, seed), shape), inputs.dtype)
    return inputs * (keep * ops.cast(1 / (1 - rate), inputs.dtype))


@fused
def _dropped_again(inputs, seed, rate):  # nothing is kept for the backward pass
    return keras.remat(lambda inputs: _dropped(inputs, seed, rate))(inputs)
