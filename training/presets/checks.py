"""Checks of a preset to fine-tune or to measure, seen from its small files alone."""

import os
import pathlib

from training.command.checks import no_folder, not_there
from training.command.without_keras import method_names, without_keras

with without_keras():
    from keras_tupe._json_file import read_json_object
    from keras_tupe._new_folder import check_is_new

TOKENIZERS = ("tokenizer.json", "preprocessor.json")


def preset_problems(folder, purpose, position_file=None):
    """Returns the settings of a preset's encoder, and a sentence for each mistake.

    A method's file is loaded, so that the method is known afterwards. The settings are `None` if
    the folder holds no preset of this package; `purpose` is what it reads, such as "questions".
    """
    if folder is None:
        return None, ["PRESET must be the folder of a preset. Received: none"]
    folder = pathlib.Path(folder)
    config = read_object(folder / "config.json").get("config")
    kinds = {"position": str, "position_options": dict}
    if not isinstance(config, dict) or not all(
        isinstance(config.get(name), kind) for name, kind in kinds.items()
    ):
        return None, [
            "PRESET must be the folder of a preset of this package, with its config.json. "
            f"Received: {str(folder)!r}"
        ]
    found = []
    if not any((folder / name).is_file() for name in TOKENIZERS):
        found.append(
            f"PRESET must have a tokenizer, so that it can read {purpose}. Save the model with its "
            f"preprocessor. Received: {str(folder)!r}, without {TOKENIZERS[0]}"
        )
    if position_file is not None and config.get("position") not in method_names():
        from keras_tupe import positions

        try:
            positions.load_file(position_file)
        except ValueError as error:
            found.append(f"--position-file: {error}")
    return config, found


def measurement_problems(settings, presets, content, is_data=os.path.isdir):
    """Returns a sentence for each mistake in `data`, `out` and `position_file` of a measurement.

    The folder `--data` is `content`, such as "of GLUE's files", if `is_data` says so of the path.
    """
    given = {"PRESET": presets, "--data": settings.data, "--out": settings.out}
    found = [f"{name} must be given. Received: none" for name, x in given.items() if not x]
    data, file = settings.data, settings.position_file
    found += [
        f"PRESET must be the folder of a preset. Received: {not_there(preset)}"
        for preset in presets
        if not os.path.isdir(preset)
    ]
    if data is not None and not is_data(data):
        found.append(f"--data must be a folder {content}. Received: {not_there(data)}")
    if file is not None and not os.path.isfile(file):
        found.append(f"--position-file must be an existing Python file. Received: {file!r}")
    return found + (no_folder(settings.out) if settings.out is not None else [])


def wrong_new_folder(out):
    """Returns a sentence if `--out` cannot be what is made, which must not be there yet."""
    if out is None:
        return ["--out must name what to make. Received: none"]
    try:
        check_is_new(out)
    except ValueError as error:
        return [str(error)]
    return no_folder(out)


def is_seq2seq(folder):
    """Returns whether a folder holds the preset of a model of pairs of texts."""
    name = read_object(pathlib.Path(folder) / "config.json").get("registered_name")
    return name == "keras_tupe>TupeSeq2SeqBackbone"


def read_object(path):
    """Returns the dictionary of a JSON file; an empty one where there is no such file."""
    try:
        return read_json_object(path)
    except (OSError, ValueError):
        return {}
