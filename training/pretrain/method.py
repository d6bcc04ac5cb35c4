"""The positional method and the attention pattern of a new model, as settings choose them."""

import importlib
import json
import pathlib

from training.command.settings import nearest, option
from training.command.without_keras import method_names, without_keras

with without_keras():
    from keras_tupe._json_file import parse_json

_REGISTRIES = {"position": "positions", "attention_pattern": "attention_patterns"}


class MethodChoice:
    """Parent of settings with the fields `position`, `position_options` and `position_file`."""

    def method_name(self):
        """Returns the name of the positional method of a new model."""
        return name_of(self, "position")

    def method(self):
        """Returns the `PositionMethod` of a new model; a ValueError if there is none."""
        return loaded(self, "position", self.method_name())

    def method_options(self):
        """Returns the options of the positional method, a dictionary."""
        return parse_json(self.position_options)


def name_of(settings, field):
    """Returns the name of what a field chooses, or the file beside it."""
    file = _beside(settings, field, "file")
    return getattr(settings, field) if file is None else pathlib.Path(file).stem


def loaded(settings, field, name):
    """Returns the record of a name that a field chooses; its file is loaded once."""
    registry = importlib.import_module(f"keras_tupe.{_REGISTRIES[field]}").REGISTRY
    file = _beside(settings, field, "file")
    # A second load of a file that was changed would make second classes.
    if file is not None and registry.path_of(name) != pathlib.Path(file).resolve():
        registry.load_file(file)
    return registry.get(name)


def _beside(settings, field, what):
    return getattr(settings, f"{field.removeprefix('attention_')}_{what}")


def method_problems(settings):
    """Returns a sentence for each mistake in the positional method of a `MethodChoice`."""
    return kind_problems(settings, "position", settings.method_name(), method_names(), '{"k": 64}')


def kind_problems(settings, field, name, known, example):
    """Returns a sentence for each mistake in the choice of a record of a kind.

    The `field` of the settings, which have a field `given`, chooses a `name` of the `known` ones.
    Sentences show options by the `example`, JSON.
    """
    kind, found, record = field.removeprefix("attention_"), [], None
    file, text = _beside(settings, field, "file"), _beside(settings, field, "options")
    if file is not None and settings.given.get(field) and getattr(settings, field) != name:
        found.append(
            f"{option(field)} and --{kind}-file name different ones: leave {option(field)} out. "
            f"Received: {field}={getattr(settings, field)!r}, {kind}_file={file!r}"
        )
    try:
        if file is not None or (name in known and text != "{}"):
            record = loaded(settings, field, name)  # else it is not needed
    except ValueError as error:
        found.append(f"--{kind}-file: {error}")
    if file is None and name not in known:
        found.append(
            f"{option(field)} must be one of {known}, or give --{kind}-file; the nearest is "
            f"{nearest(name, known)!r}. Received: {name!r}"
        )
    try:
        options = parse_json(text)
        if record is not None:
            record.resolve(options)
    except json.JSONDecodeError as error:
        found.append(
            f"--{kind}-options must be JSON, such as '{example}': {error}. Received: {text!r}"
        )
    except (TypeError, ValueError) as error:
        found.append(f"--{kind}-options: {error}")
    return found
