"""How a task was compiled, for a `.keras` file, so that its training can go on from there."""

import keras
from keras import ops

_SEEDS, _HAS_STATE = "dropout_seeds", "optimizer_has_state"


def seed_generators(model):
    """Returns the states of the seed generators of a model, Keras variables `(2,)` each."""
    return [v for v in model.variables if v.path.endswith("seed_generator_state")]


def with_progress(model, config):
    """Returns what a model was compiled with, the state of its dropout, and whether it was trained.

    Keras writes no seed into a file of weights. It stands here, since only a `.keras` file holds
    this: two runs that start from one preset have dropout masks of their own.

    Args:
        model: a Keras model.
        config: what Keras's `get_compile_config` returned; empty for a model without `compile`.
    """
    if not config:
        return config
    seeds = [ops.convert_to_numpy(state).tolist() for state in seed_generators(model)]
    has_state = getattr(model.optimizer, "built", False)
    return {**config, _SEEDS: seeds, _HAS_STATE: bool(has_state)}


def compile_from(model, config):
    """Compiles a model as another one was, and makes the optimizer's variables if it had some.

    Keras does so by itself only for models whose `compile` is its own.

    Args:
        model: a Keras model.
        config: what `with_progress` returned, or Keras itself.

    Raises:
        ValueError: if it holds a Python lambda, unless Keras was told that the file is safe.
    """
    config = dict(keras.saving.deserialize_keras_object(config))
    seeds, has_state = config.pop(_SEEDS, []), config.pop(_HAS_STATE, True)
    model.compile(**config)
    if has_state and model.optimizer is not None and not model.optimizer.built:
        model.optimizer.build(model.trainable_variables)
    states = seed_generators(model)
    if len(states) == len(seeds):
        for state, value in zip(states, seeds, strict=True):
            state.assign(value)
