"""Layer normalization in few passes."""

import keras
from keras import ops

from keras_tupe.layers._compiled import one_pass
from keras_tupe.layers._exporting import has_own_gradients
from keras_tupe.layers._parts import at_least_float32


class LayerNormalization(keras.layers.LayerNormalization):
    """`keras.layers.LayerNormalization` over the last axis; same weights, same names.

    In training on TensorFlow it has a gradient of its own. Equation, with m and v the mean and
    variance of x over the last axis, h = (x - m) / sqrt(v + epsilon), and dy the gradient of y:

        y = gamma h + beta
        dx = (gamma dy - mean(gamma dy) - h mean(gamma dy h)) / sqrt(v + epsilon)
        dgamma = sum over rows of dy h,  dbeta = sum over rows of dy

    Kept for the backward pass are x, m and v. Statistics and sums are in at least float32. There
    is no second derivative.
    """

    def call(self, inputs, training=None):
        axes = self.axis if isinstance(self.axis, (list, tuple)) else [self.axis]
        is_last = list(axes) in ([-1], [len(inputs.shape) - 1])
        is_usual = is_last and self.scale and self.center and not self.rms_scaling
        if not is_usual or not has_own_gradients(training):
            return super().call(inputs)
        gamma, beta = ops.convert_to_tensor(self.gamma), ops.convert_to_tensor(self.beta)
        return ops.cast(_normalized(inputs, gamma, beta, self.epsilon), self.compute_dtype)


def _normalized(inputs, gamma, beta, epsilon):
    import tensorflow as tf

    dtype = at_least_float32(inputs.dtype)
    width = inputs.shape[-1]
    epsilon = tf.constant(epsilon, dtype)

    @tf.custom_gradient
    def with_gradient(rows, gamma, beta):
        mean, variance = _moments(rows)
        inverse = tf.math.rsqrt(variance + epsilon)

        def gradient(upstream):
            ones = tf.ones([1, tf.shape(rows)[0]], dtype)
            column = tf.expand_dims(gamma, 1) / width
            wide = tf.cast(upstream, dtype)
            products = _products(rows, mean, inverse, upstream)
            inner = tf.matmul(wide, column), tf.matmul(products, column)
            by_rows = _inputs_gradient(rows, mean, inverse, gamma, upstream, *inner)
            sums = [tf.reshape(tf.matmul(ones, x), [width]) for x in (products, wide)]
            return by_rows, *sums

        return _scaled(rows, mean, inverse, gamma, beta), gradient

    rows = tf.reshape(inputs, [-1, width])
    outputs = with_gradient(rows, tf.cast(gamma, dtype), tf.cast(beta, dtype))
    return tf.reshape(outputs, tf.shape(inputs))


def _moments(rows):
    wide = ops.cast(rows, at_least_float32(rows.dtype))
    mean = ops.mean(wide, axis=-1, keepdims=True)
    return mean, ops.mean(_squared_differences(rows, mean), axis=-1, keepdims=True)


@one_pass
def _squared_differences(rows, mean):
    return ops.square(ops.cast(rows, mean.dtype) - mean)


@one_pass
def _scaled(rows, mean, inverse, gamma, beta):
    return ops.cast(_standardized(rows, mean, inverse) * gamma + beta, rows.dtype)


@one_pass
def _products(rows, mean, inverse, upstream):
    return _standardized(rows, mean, inverse) * ops.cast(upstream, mean.dtype)


@one_pass
def _inputs_gradient(rows, mean, inverse, gamma, upstream, inner, product):
    centred = ops.cast(upstream, mean.dtype) * gamma - inner
    centred = centred - _standardized(rows, mean, inverse) * product
    return ops.cast(centred * inverse, rows.dtype)


def _standardized(rows, mean, inverse):
    return (ops.cast(rows, mean.dtype) - mean) * inverse
