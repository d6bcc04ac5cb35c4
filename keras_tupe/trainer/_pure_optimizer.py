"""Keras optimizers as pure functions, on TensorFlow too."""

import keras

_Base = keras.src.optimizers.base_optimizer.BaseOptimizer  # has no public name


class _Pure:
    """What TensorFlow's Keras optimizers replace for `tf.distribute`, put back.

    They merge the replicas for every variable, which XLA cannot compile, and refuse
    `stateless_apply`. The trainer reduces the gradients itself, before they are clipped.
    """

    assign = _Base.assign
    assign_add = _Base.assign_add
    assign_sub = _Base.assign_sub
    stateless_apply = _Base.stateless_apply
    _apply_weight_decay = _Base._apply_weight_decay
    _backend_update_step = _Base._backend_update_step
    _var_key = _Base._var_key


def make_pure(optimizer):
    """Changes an optimizer in place so that `stateless_apply` works on every backend.

    Args:
        optimizer: a Keras optimizer that was not built yet.

    Raises:
        ValueError: if it was built, or if it would hold back what the trainer does itself.
    """
    if optimizer.built:
        raise ValueError(
            "The trainer needs an optimizer that was not used before. Make a new one. Received: "
            f"a built {type(optimizer).__name__}"
        )
    for name in ("gradient_accumulation_steps", "loss_scale_factor", "use_ema"):
        if getattr(optimizer, name, None):
            raise ValueError(
                f"The trainer takes an optimizer without `{name}`. For larger batches than fit "
                "into memory use `Trainer(micro_batches=...)`; losses are scaled by itself in "
                f"float16. Received: {name}={getattr(optimizer, name)!r}"
            )
    if isinstance(optimizer, _Pure):
        return
    base = type(optimizer)
    optimizer.__class__ = type(base.__name__, (_Pure, base), {"__module__": base.__module__})


def impure_copy(optimizer):
    """Returns a new optimizer of the same settings that was not made pure, as files name it.

    Args:
        optimizer: what `make_pure` changed.
    """
    base = next(kind for kind in type(optimizer).__mro__[1:] if not issubclass(kind, _Pure))
    return base.from_config(optimizer.get_config())
