"""Layers that are computed again in the backward pass, instead of keeping what they computed."""

import contextlib
import threading

import keras
from keras import ops

from keras_tupe._keras_private.layers import without_autocast

_ACTIVE = threading.local()  # each replica is traced by a thread of its own


@contextlib.contextmanager
def recomputation(active=True):
    """A scope in which the layers that call `recomputed` keep only their inputs.

    Args:
        active: whether it is one.
    """
    before = _is_active()
    _ACTIVE.value = active
    try:
        yield
    finally:
        _ACTIVE.value = before


def _is_active():
    return getattr(_ACTIVE, "value", False)


def recomputed(layer, function, tensors):
    """Calls a function of a layer's weights and some tensors; within `recomputation`, twice.

    The backward pass computes the outputs again, with the states of the seed generators that the
    forward pass began with, so that the masks of dropout are the same, and takes the gradients of
    that. What Keras has (`keras.remat`) would draw other masks on TensorFlow: there the trainer
    gives seeds by a `StatelessScope`, which has ended when the backward pass is computed.

    Args:
        layer: the Keras layer; the function may depend on no other variables.
        function: function of `tensors` to one tensor.
        tensors: tuple; tensors, structures of them, or `None`.

    Raises:
        TypeError: within `recomputation`, if something else is among the tensors: it would be
            left without a gradient.
    """
    if not _is_active():
        return function(*tensors)
    leaves = [leaf for leaf in keras.tree.flatten(tensors) if leaf is not None]
    for leaf in leaves:
        if not ops.is_tensor(leaf):
            raise TypeError(
                "A block that is computed again takes tensors, and tuples, lists and dictionaries "
                f"of them. Leave out `remat`. Received: {type(leaf).__name__} in {layer.path!r}"
            )
    trainable, others = layer.trainable_variables, layer.non_trainable_variables
    with without_autocast():
        weights, states = ([v.value for v in part] for part in (trainable, others))

    def compute(weights, states, leaves):
        """Returns the output, and the states that have changed, by number."""
        remaining = iter(leaves)
        given = keras.tree.map_structure(lambda x: None if x is None else next(remaining), tensors)
        before = [*zip(trainable, weights, strict=True), *zip(others, states, strict=True)]
        with keras.StatelessScope(state_mapping=before) as scope:
            outputs = function(*given)
            after = [scope.get_current_value(v) for v in others]
        pairs = enumerate(zip(states, after, strict=True))
        return outputs, {number: new for number, (old, new) in pairs if new is not old}

    route = _on_jax if keras.backend.backend() == "jax" else _on_tensorflow
    outputs, changed = route(compute, weights, states, leaves)
    for number, state in changed.items():
        others[number].assign(state)
    return outputs


def _on_jax(compute, weights, states, leaves):
    import jax

    # not `jax.checkpoint`: gradients of one's own within it may not use the seeds of its trace
    @jax.custom_vjp
    def call(weights, states, leaves):
        return compute(weights, states, leaves)

    def forward(*given):
        return compute(*given), given

    def backward(given, upstream):
        given, upstream = jax.lax.optimization_barrier((given, upstream[0]))
        weights, states, leaves = given
        _, gradients = jax.vjp(lambda *some: compute(some[0], states, some[1])[0], weights, leaves)
        of_weights, of_leaves = gradients(upstream)
        return of_weights, None, of_leaves

    call.defvjp(forward, backward)
    return call(weights, states, leaves)


def _on_tensorflow(compute, weights, states, leaves):
    import tensorflow as tf

    weights, states, leaves = (
        [tf.convert_to_tensor(x) for x in part] for part in (weights, states, leaves)
    )
    found = {}

    @tf.custom_gradient
    def call(*given):
        outputs, changed = compute(*_parts(given, weights, states))
        found.update(changed)

        def gradients(upstream):
            # 0, and not known before the backward pass gets here: no compiler may take what the
            # forward pass computed. Where it is not finite the whole step is left out.
            late = tf.minimum(tf.abs(tf.reshape(upstream, [-1])[0]), 0)
            again = [x if x.dtype == tf.bool else x + tf.cast(late, x.dtype) for x in given]
            sources = [x for x in again if x.dtype.is_floating]
            with tf.GradientTape(watch_accessed_variables=False) as tape:
                tape.watch(sources)
                outputs, _ = compute(*_parts(again, weights, states))
            results = iter(tape.gradient(outputs, sources, upstream))
            return [_dense(next(results)) if x.dtype.is_floating else None for x in again]

        return outputs, gradients

    return call(*weights, *states, *leaves), found


def _parts(values, weights, states):
    """Returns weights, states and the rest of a list of all."""
    first, second = len(weights), len(weights) + len(states)
    return values[:first], values[first:second], values[second:]


def _dense(gradient):
    return None if gradient is None else ops.convert_to_tensor(gradient)
