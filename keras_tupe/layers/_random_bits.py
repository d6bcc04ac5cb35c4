"""Random bits for dropout."""

import math

import keras
from keras import ops


def random_int16(shape, seed):
    """Returns uniform integers from -2**15 to 2**15 - 1, or `None` where only floats are drawn.

    Half the time of uniform floats on a CPU, and exact in every precision: in bfloat16 Keras draws
    floats of 8 bits, so that a rate of 0.1 drops 10.17 % of the elements.

    Args:
        shape: tuple of integers or tensors.
        seed: what a Keras seed generator gave.
    """
    backend = keras.backend.backend()
    if backend == "tensorflow":
        return _on_tensorflow(shape, seed)
    if backend == "jax" and all(isinstance(size, int) for size in shape):
        import jax

        bits = jax.random.bits(seed, shape, "uint16")
        return jax.lax.bitcast_convert_type(bits, "int16")
    return None


def _on_tensorflow(shape, seed):
    import tensorflow as tf

    size = (
        math.prod(shape) if all(isinstance(n, int) for n in shape) else ops.prod(ops.stack(shape))
    )
    words = tf.random.stateless_uniform(
        [(size + 1) // 2], tf.cast(seed, "int32"), None, None, "int32"
    )
    halves = tf.reshape(tf.bitcast(words, "int16"), [-1])
    return tf.reshape(halves[:size], shape)
