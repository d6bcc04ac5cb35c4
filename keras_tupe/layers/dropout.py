"""Dropout whose seed generator can be replaced."""

import functools

import keras
from keras import ops

from keras_tupe.layers._compiled import one_pass
from keras_tupe.layers._exporting import has_own_gradients
from keras_tupe.layers.attention.random_bits import can_draw, keep_mask


@keras.saving.register_keras_serializable(package="keras_tupe")
class Dropout(keras.layers.Layer):
    """Inverted dropout with a seed generator that may be replaced after construction.

    Under a `tf.distribute` strategy every replica draws the same mask from a stock
    `keras.layers.Dropout`, because the generator's state is mirrored, and the stock layer
    refuses another generator. Here `seed_generator` is an ordinary attribute until the
    layer is first called.

    Equation:

        out = x * keep / (1 - rate),  keep ~ Bernoulli(1 - rate)

    with the rate rounded to a multiple of 2**-32 where bits are drawn (TensorFlow and JAX): by
    counter, so that the backward pass finds them again.

    Args:
        rate: float in [0, 1), the share of elements set to zero.
        seed: optional integer seed of the generator.
        **kwargs: `name`, `dtype` and the other arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: tensor of any shape.
        training: whether to drop; the identity otherwise.

    Returns:
        Tensor of the same shape and dtype.

    Masking: none; the layer acts on each element alone.

    Raises:
        ValueError: if `rate` is outside [0, 1).

    Example:
        >>> import numpy as np
        >>> Dropout(0.5)(np.ones((2, 3)), training=False).shape
        TensorShape([2, 3])

    References:
        Srivastava et al. Dropout: a simple way to prevent neural networks from
        overfitting. JMLR 2014.
    """

    def __init__(self, rate, seed=None, **kwargs):
        super().__init__(**kwargs)
        if isinstance(rate, bool) or not isinstance(rate, (int, float)) or not 0 <= rate < 1:
            raise ValueError(
                "`rate` is the share of elements to drop and must be a number in [0, 1). "
                f"Received: rate={rate!r}"
            )
        self.rate = rate
        self.seed = seed
        if rate > 0:
            self.seed_generator = keras.random.SeedGenerator(seed)
        self.supports_masking = True

    def call(self, inputs, training=False):
        if not training or self.rate == 0:
            return inputs
        if not can_draw():
            return keras.random.dropout(inputs, self.rate, seed=self.seed_generator)
        seed = self.seed_generator.next()
        if has_own_gradients(training):
            return _dropped(inputs, seed, self.rate)
        return inputs * _factors(inputs, seed, self.rate)

    def added(self, residual, inputs, training=False):
        """Returns `residual + dropout(inputs)`, in one pass where passes are compiled.

        Args:
            residual: tensor of the shape and dtype of `inputs`.
            inputs, training: as in the call arguments.
        """
        if training and self.rate and has_own_gradients(training):
            return _dropped(inputs, self.seed_generator.next(), self.rate, residual)
        return residual + self(inputs, training=training)

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        return {**super().get_config(), "rate": self.rate, "seed": self.seed}


def _factors(like, seed, rate):
    """Returns what elements are multiplied by, of the shape and in the dtype of `like`."""
    shape = ops.shape(like)
    rows = (1,) * (2 - len(shape)) + tuple(shape)
    keep = ops.cast(ops.reshape(keep_mask(rows, rate, seed), shape), like.dtype)
    return keep * ops.cast(1 / (1 - rate), like.dtype)


def _dropped(inputs, seed, rate, residual=None):
    """Returns the elements after dropout, plus the residual if there is one, on TensorFlow.

    Nothing is kept for the backward pass: it finds again what was dropped.
    """
    import tensorflow as tf

    forward, backward = _passes(rate)

    @tf.custom_gradient
    def without_residual(inputs):
        return forward(inputs, seed), lambda upstream: backward(upstream, seed)

    @tf.custom_gradient
    def with_residual(inputs, residual):
        outputs = forward(inputs, seed, residual)
        return outputs, lambda upstream: (backward(upstream, seed), upstream)

    return without_residual(inputs) if residual is None else with_residual(inputs, residual)


@functools.cache
def _passes(rate):
    """Returns the pass forward and the one backward of dropout at a rate."""

    @one_pass
    def forward(inputs, seed, residual=None):
        outputs = inputs * _factors(inputs, seed, rate)
        return outputs if residual is None else residual + outputs

    @one_pass
    def backward(upstream, seed):
        return upstream * _factors(upstream, seed, rate)

    return forward, backward
