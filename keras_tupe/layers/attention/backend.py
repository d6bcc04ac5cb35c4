"""What Keras has no function for: a pull-back inside of a gradient, and a loop that collects."""

import keras
from keras import ops


def vector_jacobian_product(function, tensors):
    """Returns what a function answers, and the function from its gradient to that of `tensors`.

    Args:
        function: list of tensors -> tensor, or list of tensors.
        tensors: list of tensors.
    """
    if keras.backend.backend() == "jax":
        import jax

        out, pull_back = jax.vjp(function, tensors)
        return out, lambda upstream: pull_back(upstream)[0]

    import tensorflow as tf

    with tf.GradientTape() as tape:
        tape.watch(tensors)
        out = function(tensors)

    def pull_back(upstream):
        return tape.gradient(
            out, tensors, upstream, unconnected_gradients=tf.UnconnectedGradients.ZERO
        )

    return out, pull_back


def with_gradient(forward, backward, tensors):
    """Returns what `forward` answers, with the gradient that `backward` gives.

    Args:
        forward: list of tensors -> tensor.
        backward: (list of tensors, the answer, its gradient) -> list of gradients.
        tensors: list of tensors.
    """

    @ops.custom_gradient
    def apply(*tensors):
        tensors = [ops.stop_gradient(x) for x in tensors]
        out = forward(tensors)

        def gradient(*arguments, upstream=None):
            return backward(tensors, out, arguments[0] if upstream is None else upstream)

        return out, gradient

    return apply(*tensors)


def made_late(tensors, upstream):
    """Returns the same tensors as a compiler cannot know before the backward pass gets here.

    Otherwise it would find that what is made of them again was made in the forward pass, and keep
    that.

    Args:
        tensors: list of tensors.
        upstream: the gradient that a backward pass begins with, finite; where it is not, neither
            is what is returned.
    """
    if keras.backend.backend() == "jax":
        import jax

        return jax.lax.optimization_barrier((tensors, upstream))[0]

    import tensorflow as tf

    zero = tf.minimum(tf.abs(tf.reshape(upstream, [-1])[0]), 0)
    return [x + tf.cast(zero, x.dtype) for x in tensors]


def loop(step, count, sums, tensors, like):
    """Returns the last sums, and what each step gave, stacked.

    Args:
        step: (index, sums, entry of each tensor) -> (sums, list of tensors).
        count: number of steps, an integer or a scalar tensor; at least 1.
        sums: list of tensors.
        tensors: list of tensors, whose first axis are the steps.
        like: pairs of dtype and shape of what a step gives.
    """
    if keras.backend.backend() == "jax":
        import jax

        def body(sums, numbered):
            index, entries = numbered
            sums, given = step(index, sums, entries)
            return tuple(sums), tuple(given)

        return jax.lax.scan(body, tuple(sums), (jax.numpy.arange(count), tuple(tensors)))

    import tensorflow as tf

    shapes = [x.shape for x in sums]  # a step may not know as much of them
    arrays = [tf.TensorArray(dtype, count, element_shape=shape) for dtype, shape in like]

    def body(index, sums, arrays):
        sums, given = step(index, sums, [tf.gather(x, index) for x in tensors])
        arrays = [array.write(index, x) for array, x in zip(arrays, given, strict=True)]
        return (
            index + 1,
            [tf.ensure_shape(x, shape) for x, shape in zip(sums, shapes, strict=True)],
            arrays,
        )

    _, sums, arrays = tf.while_loop(
        lambda index, *_: index < count,
        body,
        (tf.constant(0), list(sums), arrays),
        parallel_iterations=1,
    )
    return sums, [array.stack() for array in arrays]
