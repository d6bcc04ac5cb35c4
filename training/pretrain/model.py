"""The model of a run, new or from a preset, and the preset at its end."""

import dataclasses

import keras

from keras_tupe import SIZES, TupeTokenizer
from keras_tupe.models._kept_tokenizer import can_read_text, kept_tokenizer
from training.presets.folder import check_same_vocabulary
from training.pretrain.trunk import ASKED


def make_model(settings, prepared):
    """Returns the model of the objective that a run starts with.

    Two new models of one seed differ in the weights of their positional methods alone: the
    trunk's are those that it has without positions.

    Args:
        settings: a `Settings` of `training.pretrain`.
        prepared: the `PreparedRows` to train on.

    Raises:
        ValueError: if model and rows do not fit each other.
    """
    keras.utils.set_random_seed(settings.seed)
    if settings.preset is not None:
        model = _from_preset(settings, prepared)
    else:
        model = _new_model(settings, prepared)
    backbone = model.backbone
    if backbone.has_length_limit and prepared.length > backbone.max_sequence_length:
        raise ValueError(
            "The rows must not be longer than the model's position tables. Prepare shorter rows, "
            "or give a larger --max-sequence-length. Received: rows of "
            f"{prepared.length} tokens, max_sequence_length={backbone.max_sequence_length}"
        )
    return model


def _new_model(settings, prepared):
    """Returns a new model; of one seed, all methods have the same weights but for their own."""
    settings.method()  # loads a file that defines it
    objective, options = settings.objective_record(), settings.objective_options()
    arguments = backbone_arguments(settings, prepared)
    without = {**arguments, "position": "none", "position_options": None}
    trunk = objective.make_model(objective.backbone_cls(**without), options)
    keras.utils.set_random_seed(settings.seed)
    model = objective.make_model(objective.backbone_cls(**arguments), options)
    # initializers draw in the order of the layers, and a method's own layers are among them
    for ours, theirs in _parts(model, trunk):
        values = {weight.path: weight for weight in theirs.weights}
        for weight in ours.weights:
            if weight.path in values and weight.shape == values[weight.path].shape:
                weight.assign(values[weight.path])
    return model


def backbone_arguments(settings, prepared):
    """Returns what the backbone of a new model is made with, see `make_model`."""
    objective = settings.objective_record()
    arguments = {name: getattr(settings, name) for name in ASKED}
    arguments |= dataclasses.asdict(SIZES[settings.size])
    arguments |= {
        "vocabulary_size": prepared.vocabulary.size,
        "num_segments": objective.needs("num_segments", 0),
        "position": settings.method_name(),
        "position_options": settings.method_options(),
        "attention_pattern": settings.pattern_name(),
        "pattern_options": settings.resolved_pattern_options(),
        "max_sequence_length": settings.max_sequence_length
        or settings.memory_and_segment()
        or prepared.length,
    }
    return {name: arguments[name] for name in arguments if name in objective.backbone_arguments}


def _parts(model, other):
    """Returns pairs of models whose weights have names of their own."""
    parts = [getattr(one, "parts", {"": one}) for one in (model, other)]
    return [(part, parts[1][name]) for name, part in parts[0].items()]


def save_preset(model, tokenizer, length, folder):
    """Writes a preset with the tokenizer: the task's `from_preset(folder)` takes raw text.

    Args:
        model: the trained model.
        tokenizer: the `TupeTokenizer` of its rows.
        length: tokens per row of the preset's preprocessor, of each side if it has two.
        folder: `pathlib.Path` of an empty folder.
    """
    model.compile()  # else the optimizer's state would go into the preset
    preprocessor_cls = type(model).preprocessor_cls
    names = getattr(preprocessor_cls, "length_names", ("sequence_length",))
    model.preprocessor = preprocessor_cls(tokenizer, **dict.fromkeys(names, length))
    model.save_to_preset(str(folder))


def tokenizer_of(vocabulary):
    """Returns the `TupeTokenizer` of a vocabulary; where it cannot run, one that can be saved."""
    if not can_read_text():
        content = vocabulary.path.read_bytes()
        return kept_tokenizer(vocabulary.kind, [content], vocabulary.lowercase)
    if vocabulary.kind == "wordpiece":
        content = {"vocabulary": vocabulary.pieces}
    else:
        content = {"sentencepiece": vocabulary.path.read_bytes()}
    return TupeTokenizer(**content, lowercase=vocabulary.lowercase)


def _from_preset(settings, prepared):
    try:
        objective, options = settings.objective_record(), settings.objective_options()
        model = objective.task.from_preset(
            settings.preset,
            preprocessor=None,
            dtype=settings.precision,
            **{name: options[name] for name in objective.preset_options},
        )
    except (OSError, ValueError, TypeError, KeyError, AttributeError, ImportError) as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise ValueError(
            f"--preset must be the folder of a whole preset of this package: {reason}. Received: "
            f"preset={settings.preset!r}"
        ) from None
    check_same_vocabulary(settings.preset, model.backbone.vocabulary_size, prepared.vocabulary)
    return _with_dropout(model, settings.dropout)


def _with_dropout(model, dropout):
    """Returns a model of the same configuration and weights, but for the dropout rate."""
    if model.backbone.dropout == dropout:
        return model
    config = model.get_config()
    for part in config.values():
        if isinstance(part, dict) and part["class_name"] == type(model.backbone).__name__:
            part["config"]["dropout"] = dropout
    again = type(model).from_config(config)
    again.set_weights(model.get_weights())
    return again
