"""Copies of models with another configuration of their encoder."""

from keras_tupe.models.tupe_backbone import TupeBackbone


def backbone_of(model):
    """Returns the encoder of a model.

    Args:
        model: a `TupeBackbone`, or a task with one.

    Raises:
        TypeError: if it is something else.
    """
    backbone = getattr(model, "backbone", model)
    is_one = isinstance(backbone, TupeBackbone)
    if not is_one or (model is not backbone and "backbone" not in model.get_config()):
        raise TypeError(
            "`model` must be a `TupeBackbone` or a task with one, such as `TupeMaskedLM`; of a "
            "model of several encoders take one. "
            f"Received: model={model!r}"
        )
    return backbone


def copy_with(model, changes):
    """Returns a new model of the same class and settings but for some of its encoder's.

    Its weights are new. A preprocessor is handed over as it is.

    Args:
        model: a `TupeBackbone`, or a task with one.
        changes: dictionary of arguments of a `TupeBackbone`.
    """
    backbone = backbone_of(model)
    made = TupeBackbone.from_config({**backbone.get_config(), **changes})
    if model is backbone:
        return made
    config = {**model.get_config(), "backbone": made, "preprocessor": model.preprocessor}
    return type(model)(**{name: x for name, x in config.items() if name != "trainable"})
