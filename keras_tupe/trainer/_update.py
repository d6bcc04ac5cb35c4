"""From summed gradients to new weights: one pure function for every backend."""

import warnings

import keras
from keras import ops

_GROWTH_STEPS = 2000  # good steps after which the loss scale is doubled


def updated(optimizer, sums, gradients, values, scales_loss):
    """Returns the new values after a step.

    Equation, with G_r the gradient of replica r's loss sum times the loss scale s, n_r its count:

        G = sum_r G_r / (s sum_r n_r),    then the optimizer, which clips G by its norm

    Nothing but the counters changes if the loss or |G| is not finite. Where losses are scaled
    (float16), a gradient that is not finite at a scale above 1 is an overflow, which halves the
    scale; 2,000 good steps double it.

    Args:
        optimizer: a pure optimizer, built.
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
    is_good = ops.logical_and(ops.isfinite(norm), ops.isfinite(loss_sum))
    with warnings.catch_warnings():
        # no part of masked language modeling
        warnings.filterwarnings("ignore", "Gradients do not exist for variables .'pooled_dense")
        trainable, optimizer_values = optimizer.stateless_apply(
            values["optimizer"], gradients, values["trainable"]
        )

    def kept(new, old):
        return [ops.where(is_good, a, b) for a, b in zip(new, old, strict=True)]

    good = ops.cast(is_good, "int32")
    step = values["step"]
    new = {
        "trainable": kept(trainable, values["trainable"]),
        "optimizer": kept(optimizer_values, values["optimizer"]),
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
        counted = ops.where(grows, 0, values["good_steps"] + 1)
        new["good_steps"] = ops.where(is_good, counted, 0)
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
