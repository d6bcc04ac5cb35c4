"""Refusals of what cannot be trained exactly: arguments, models with other losses or state."""

import keras

from keras_tupe._keras_private.layers import all_layers
from keras_tupe.layers import EncoderBlock
from keras_tupe.layers._checks import check_positive_integers, is_integer


def check_arguments(model, micro_batches, xla, planned_steps, remat, skip_bad_steps):
    """Refuses impossible arguments of `Trainer`.

    Raises:
        ValueError, TypeError: if one of them is not as described there.
    """
    check_positive_integers(micro_batches=micro_batches)
    if planned_steps is not None:
        check_positive_integers(planned_steps=planned_steps)
    if not is_integer(skip_bad_steps) or skip_bad_steps < 0:
        raise ValueError(
            f"`skip_bad_steps` must be an integer >= 0. Received: skip_bad_steps={skip_bad_steps!r}"
        )
    if xla not in ("auto", True, False):
        raise ValueError(f"`xla` must be 'auto', True or False. Received: xla={xla!r}")
    if not isinstance(model, keras.Model) or not model.built:
        raise ValueError(
            "`model` must be a built Keras model. Call it once, or make it with the functional "
            f"API. Received: model={model!r}"
        )
    if remat not in (True, False):
        raise ValueError(f"`remat` must be True or False. Received: remat={remat!r}")
    if remat and not any(isinstance(layer, EncoderBlock) for layer in all_layers(model)):
        raise ValueError(
            "`remat=True` computes encoder blocks again, so the model must have some "
            "(`keras_tupe.layers.EncoderBlock`). Leave it out. Received: a model without any, "
            f"{model.name!r}"
        )
    if not isinstance(getattr(model, "output", None), dict):
        check_outputs(model)


def check_outputs(model, loss=None):
    """Refuses losses that are not those of a model's outputs.

    Args:
        model: a built model.
        loss: what `Trainer.compile` was given: of one output, or a dictionary.

    Raises:
        ValueError: if one loss is to be that of several outputs, or the names are others.
    """
    output = getattr(model, "output", None)
    if isinstance(loss, dict):
        names = sorted(output) if isinstance(output, dict) else []
        if sorted(loss) != names or not names:
            received = f"outputs {names}" if names else "a model without named outputs"
            raise ValueError(
                "Several losses must have the names of the model's outputs, a dictionary. "
                f"Received: losses {sorted(loss)}, {received}"
            )
        return
    outputs = keras.tree.flatten(getattr(model, "outputs", None) or [None])
    if len(outputs) != 1:
        raise ValueError(
            "`model` must have one output, which the loss is of, or a dictionary of outputs with "
            "a dictionary of losses by their names. Received: one loss, and a model with "
            f"{len(outputs)} outputs"
        )


def refuse_layer_losses(model, scope=None):
    """Refuses a model with losses of its layers.

    Args:
        model: the model.
        scope: the `keras.StatelessScope` of a call that collected losses, or `None`.

    Raises:
        ValueError: if there are some.
    """
    if model.losses or (scope and scope.losses):
        raise ValueError(
            "The trainer knows one loss, that of the outputs: regularizers and `add_loss` "
            "would be left out. Received: a model with such losses"
        )


def refuse_other_state(model, seed_states, scope, mapping):
    """Refuses a model whose call changed something else than the state of its dropout.

    Args:
        model: the model.
        seed_states: the states of its seed generators.
        scope: the `keras.StatelessScope` of the call.
        mapping: list of (variable, value) that the scope began with.

    Raises:
        ValueError: if it did.
    """
    given = {id(variable): value for variable, value in mapping}
    seeds = {id(variable) for variable in seed_states}
    for variable in model.non_trainable_variables:
        value = scope.get_current_value(variable)
        if id(variable) not in seeds and value is not given.get(id(variable)):
            raise ValueError(
                "The trainer knows models whose weights change by their gradients alone. "
                f"Received: a model that changes {variable.path!r} in training"
            )
