"""Keras optimizers as pure functions, on TensorFlow too."""

from keras_tupe._keras_private import PureOptimizer


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
    if isinstance(optimizer, PureOptimizer):
        return
    base = type(optimizer)
    optimizer.__class__ = type(
        base.__name__, (PureOptimizer, base), {"__module__": base.__module__}
    )


def impure_copy(optimizer):
    """Returns a new optimizer of the same settings that was not made pure, as files name it.

    Args:
        optimizer: what `make_pure` changed.
    """
    base = next(kind for kind in type(optimizer).__mro__[1:] if not issubclass(kind, PureOptimizer))
    return base.from_config(optimizer.get_config())
