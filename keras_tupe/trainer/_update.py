"""From summed gradients to new weights as a pure function, and the counters of every backend."""

import warnings

import keras
from keras import ops

COUNTERS = ("step", "skipped_steps", "last_skipped_step", "loss_scale", "good_steps")
# as no part of masked language modeling
NO_GRADIENT = "Gradients do not exist for variables .'pooled_dense"
_GROWTH_STEPS = 2000  # good steps after which the loss scale is doubled


def updated(optimizer, sums, gradients, values, scales_loss):
    """Returns the new values after a step.

    Equation, with G_r the gradient of replica r's loss sum times the loss scale s, n_r its count:

        G = sum_r G_r / (s sum_r n_r),    then the optimizer, which clips G by its norm

    Nothing but the counters changes if the loss or |G| is not finite. Where losses are scaled
    (float16), a gradient that is not finite at a scale above 1 is an overflow, which halves the
    scale; 2,000 good steps double it.

    Args:
        optimizer: a Keras optimizer, built.
        sums: `(loss_sum, count)` of the whole batch.
        gradients: the summed gradients, `None` for variables that the loss does not depend on.
        values: dictionary of `trainable` and `optimizer`, lists of tensors, and of the scalars
            `step`, `skipped_steps`, `last_skipped_step`, `loss_scale` and `good_steps`.
        scales_loss: whether losses are scaled.

    Returns:
        `(values, facts)`: the new values, and the scalars `batch_loss`, `gradient_norm` (before
        it is clipped), `skipped_steps` and `last_skipped_step`. A step that overflowed does not
        count as skipped.
    """
    loss_sum, count = sums
    divisor = ops.maximum(count, 1e-6)
    if scales_loss:
        divisor = divisor * ops.cast(values["loss_scale"], divisor.dtype)
    gradients = [None if g is None else g / ops.cast(divisor, g.dtype) for g in gradients]
    gradients = _in_one_dtype(gradients)
    squares = [ops.cast(ops.sum(ops.square(g)), loss_sum.dtype) for g in gradients if g is not None]
    norm = ops.sqrt(sum(squares[1:], squares[0]))
    is_good = is_finite(loss_sum, norm)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", NO_GRADIENT)
        trainable, optimizer_values = optimizer.stateless_apply(
            values["optimizer"], gradients, values["trainable"]
        )

    def kept(new, old):
        return [ops.where(is_good, a, b) for a, b in zip(new, old, strict=True)]

    new, facts = counted(values, loss_sum, count, norm, scales_loss)
    new["trainable"] = kept(trainable, values["trainable"])
    new["optimizer"] = kept(optimizer_values, values["optimizer"])
    return new, facts


def is_finite(loss_sum, norm):
    """Returns whether a step changes the weights, a boolean scalar."""
    return ops.logical_and(ops.isfinite(norm), ops.isfinite(loss_sum))


def counted(values, loss_sum, count, norm, scales_loss):
    """Returns the counters after a step, and what is told of it.

    Args:
        values: dictionary of the scalars of `COUNTERS`.
        loss_sum, count: of the whole batch.
        norm: that of the gradient.
        scales_loss: whether losses are scaled.

    Returns:
        `(counters, facts)`, see `updated`.
    """
    is_good = is_finite(loss_sum, norm)
    good = ops.cast(is_good, "int32")
    step = values["step"]
    new = {
        "step": step + 1,
        "loss_scale": values["loss_scale"],
        "good_steps": values["good_steps"],
    }
    bad = 1 - good
    if scales_loss:
        is_overflow = ops.logical_and(ops.isfinite(loss_sum), values["loss_scale"] > 1)
        bad = bad * (1 - ops.cast(is_overflow, "int32"))
        grows = values["good_steps"] + 1 >= _GROWTH_STEPS
        scale = values["loss_scale"]
        grown = ops.where(grows, scale * 2, scale)
        new["loss_scale"] = ops.where(is_good, grown, ops.maximum(scale / 2, 1.0))
        steps = ops.where(grows, 0, values["good_steps"] + 1)
        new["good_steps"] = ops.where(is_good, steps, 0)
    new["skipped_steps"] = values["skipped_steps"] + bad
    new["last_skipped_step"] = ops.where(bad > 0, step, values["last_skipped_step"])
    facts = {name: new[name] for name in ("skipped_steps", "last_skipped_step")}
    facts["batch_loss"] = ops.cast(loss_sum / ops.maximum(count, 1e-6), "float32")
    facts["gradient_norm"] = ops.cast(norm, "float32")
    return new, facts


def _in_one_dtype(gradients):
    """Returns the gradients in float32 if weights are of several dtypes: Keras clips them together.

    Under a pure half-precision policy position projections keep weights in float32.
    """
    found = [g for g in gradients if g is not None]
    if len({keras.backend.standardize_dtype(g.dtype) for g in found}) < 2:
        return gradients
    return [None if g is None else ops.cast(g, "float32") for g in gradients]
