"""The positional method of a new model, as settings choose it."""

import json
import pathlib

from training.command.checks import option
from training.command.kinds import nearest
from training.command.without_keras import method_names, without_keras

with without_keras():
    from keras_tupe._json_file import parse_json


class MethodChoice:
    """Parent of settings with the fields `position`, `position_options` and `position_file`."""

    def method_name(self):
        """Returns the name of the positional method of a new model."""
        file = self.position_file
        return self.position if file is None else pathlib.Path(file).stem

    def method(self):
        """Returns the `PositionMethod` of a new model; its file is loaded once.

        Raises:
            ValueError: if there is no such method, or its file does not define one.
        """
        from keras_tupe import positions

        name = self.method_name()
        if self.position_file is not None:
            path = pathlib.Path(self.position_file).resolve()
            # A second load of a file that was changed would make second classes.
            if positions.REGISTRY.path_of(name) != path:
                positions.load_file(path)
        return positions.get(name)

    def method_options(self):
        """Returns the options of the positional method, a dictionary."""
        return parse_json(self.position_options)


def method_problems(settings):
    """Returns a sentence for each mistake in the choice of a positional method.

    Args:
        settings: a `MethodChoice` with a field `given`, see `training.command.settings.parse`.
    """
    name, known = settings.method_name(), method_names()
    return kind_problems(settings, "position", name, known, settings.method, '{"k": 64}')


def kind_problems(settings, field, name, known, load, example):
    """Returns a sentence for each mistake in the choice of a record of a kind.

    Args:
        settings: has `field`, and as `..._file` and `..._options` those of the kind; and `given`.
        field: the setting that names it.
        name: what is chosen.
        known: list of the names that there are.
        load: function that returns the record; it is needed for a file or options alone.
        example: options, as JSON.
    """
    kind, found, record = field.removeprefix("attention_"), [], None
    file, text = getattr(settings, f"{kind}_file"), getattr(settings, f"{kind}_options")
    if file is not None and settings.given.get(field) and getattr(settings, field) != name:
        found.append(
            f"{option(field)} and --{kind}-file name different ones: leave {option(field)} out. "
            f"Received: {field}={getattr(settings, field)!r}, {kind}_file={file!r}"
        )
    try:
        if file is not None or (name in known and text != "{}"):
            record = load()
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
