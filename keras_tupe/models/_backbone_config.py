"""Record of the encoder beside its SavedModel, from which it can be made again."""

import json
import pathlib

import keras

from keras_tupe._json_file import read_json_object
from keras_tupe.models.tupe_backbone import TupeBackbone

FILE = pathlib.PurePath("assets.extra", "keras_tupe_backbone.json")  # TensorFlow leaves it alone
FORMAT = 1
# `has_length_limit`: whether position tables end at `max_sequence_length`
KEYS = {"format": int, "has_length_limit": bool, "config": dict}
SIZES = ("vocabulary_size", "max_sequence_length", "num_segments")


def write_backbone_config(backbone, folder):
    """Writes `KEYS` of a `TupeBackbone` as the `FILE` in the folder of its SavedModel."""
    facts = {
        "format": FORMAT,
        "has_length_limit": bool(backbone.has_length_limit),
        "config": keras.saving.serialize_keras_object(backbone.get_config()),
    }
    file = pathlib.Path(folder) / FILE
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")


def read_backbone_config(folder):
    """Returns the `KEYS` of a SavedModel's `FILE`; `None` without one."""
    file = pathlib.Path(folder) / FILE
    if not file.is_file():
        return None
    try:
        facts = read_json_object(file)
    except ValueError as error:
        raise ValueError(
            f"The config of an exported encoder is no JSON object ({error}). Export it again. "
            f"Received: {str(file)!r}"
        ) from error
    if type(facts.get("format")) is int and facts["format"] > FORMAT:
        raise ValueError(
            f"The encoder was exported by a later keras_tupe (format {facts['format']}; this one "
            f"reads {FORMAT}). Install that version. Received: {str(file)!r}"
        )
    config = facts.get("config")
    is_complete = (
        all(type(facts.get(name)) is kind for name, kind in KEYS.items())
        and all(type(config.get(name)) is int for name in SIZES)
        and isinstance(config.get("position"), str)
    )
    if not is_complete:
        raise ValueError(
            f"The config of an exported encoder must hold {sorted(KEYS)}, and in `config` "
            f"{sorted(SIZES)} and `position`. Export it again. Received: {str(file)!r}"
        )
    return facts


def new_backbone(facts):
    """Returns a `TupeBackbone` with new weights from what `read_backbone_config` returned."""
    try:
        return TupeBackbone.from_config(facts["config"])
    except Exception as error:  # what Keras raises for an entry of another kind is open
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise ValueError(
            f"The config of an exported encoder does not make one: {reason}. Export it again. "
            f"Received: {type(error).__name__}"
        ) from error
