"""From summed gradients to new weights on TensorFlow, each weight changed where it is in memory."""

import warnings

import tensorflow as tf

from keras_tupe._keras_private.optimizers import InPlaceOptimizer
from keras_tupe.layers._parts import at_least_float32
from keras_tupe.trainer._update import COUNTERS, NO_GRADIENT, counted, is_finite


def update(trainer, loss_sum, count, gradients):
    """Changes weights, optimizer and counters of a trainer by one step, on this replica alone.

    Equation: that of `updated`. Its pure values would be a second copy of all weights and moments;
    here the optimizer's own assignments write to the variables, weight by weight, and the division
    by the count, the loss scale and clipping by the global norm are one factor. Nothing but the
    counters is touched by a step that is not finite.

    Args:
        trainer: the compiled `Trainer`.
        loss_sum, count: sums over the whole batch.
        gradients: the summed gradients, tensors or `None`, as `model.trainable_variables`.

    Returns:
        The facts of `updated`.
    """
    optimizer = trainer.optimizer
    values = {name: tf.convert_to_tensor(getattr(trainer, f"_{name}").value) for name in COUNTERS}
    divisor = tf.maximum(count, 1e-6)
    if trainer._scales:
        divisor = divisor * tf.cast(values["loss_scale"], divisor.dtype)
    norm = _norm([g for g in gradients if g is not None], divisor)
    is_good = is_finite(loss_sum, norm)

    def apply():
        factor = 1 / divisor
        clip_norm = optimizer.global_clipnorm
        if clip_norm:
            factor = factor * tf.minimum(clip_norm / norm, tf.ones_like(norm))
        scaled = [None if g is None else _times(g, factor) for g in gradients]
        optimizer.apply_in_place(scaled, trainer.model.trainable_variables)
        return tf.constant(0)

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", NO_GRADIENT)
        tf.cond(is_good, apply, lambda: tf.constant(0))
    new, facts = counted(values, loss_sum, count, norm, trainer._scales)
    for name, value in new.items():
        InPlaceOptimizer.assign(optimizer, getattr(trainer, f"_{name}"), value)
    return facts


def _norm(gradients, divisor):
    """Returns the norm of all gradients together over a divisor, in at least float32."""
    halves = [tf.nn.l2_loss(tf.cast(g, at_least_float32(g.dtype.name))) for g in gradients]
    return tf.sqrt(2 * tf.add_n([tf.cast(half, divisor.dtype) for half in halves])) / divisor


def _times(gradient, factor):
    wide = at_least_float32(gradient.dtype.name)
    product = tf.cast(gradient, wide) * tf.cast(factor, wide)
    return tf.cast(product, gradient.dtype)
