"""Keras optimizers without what TensorFlow's adds to them for its strategies."""

import keras

from keras_tupe._keras_private.optimizers import InPlaceAdam, InPlaceOptimizer


def make_for_replicas(optimizer):
    """Gives an optimizer `apply_in_place` on TensorFlow, by which a replica applies it by itself.

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
    if keras.backend.backend() != "tensorflow" or isinstance(optimizer, InPlaceOptimizer):
        return
    base = type(optimizer)
    parts = (base, InPlaceOptimizer)
    if InPlaceAdam.fits(optimizer):
        parts = (InPlaceAdam, *parts)
    optimizer.__class__ = type(base.__name__, parts, {"__module__": base.__module__})


def keras_copy(optimizer):
    """Returns a new optimizer of the same settings and of Keras's own class, as files name it.

    Args:
        optimizer: what `make_for_replicas` changed.
    """
    base = type(optimizer)
    if isinstance(optimizer, InPlaceOptimizer):
        base = next(kind for kind in base.__bases__ if kind is not InPlaceAdam)
    return base.from_config(optimizer.get_config())
