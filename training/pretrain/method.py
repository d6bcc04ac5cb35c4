"""The positional method of a new model, as settings choose it."""

import json
import pathlib

from training.command.kinds import nearest
from training.command.without_keras import method_names, without_keras

with without_keras():
    from keras_tupe._json_file import parse_json


class MethodChoice:
    """Parent of settings with the fields `position`, `position_options` and `position_file`."""

    def method_name(self):
        """Returns the name of the positional method of a new model."""
        return (
            self.position if self.position_file is None else pathlib.Path(self.position_file).stem
        )

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
    name = settings.method_name()
    found = []
    if (
        settings.position_file is not None
        and settings.given.get("position")
        and (settings.position != name)
    ):
        found.append(
            "--position and --position-file name different methods: leave --position out. "
            f"Received: position={settings.position!r}, position_file={settings.position_file!r}"
        )
    method = None
    if settings.position_file is not None:
        try:
            method = settings.method()
        except ValueError as error:
            found.append(f"--position-file: {error}")
    elif name not in method_names():
        found.append(
            f"--position must be one of {method_names()}, or give --position-file; the nearest is "
            f"{nearest(name, method_names())!r}. Received: {name!r}"
        )
    elif settings.position_options != "{}":  # else its record is not needed
        method = settings.method()
    try:
        options = settings.method_options()
        if method is not None:
            method.resolve(options)
    except json.JSONDecodeError as error:
        found.append(
            f"--position-options must be JSON, such as '{{\"k\": 64}}': {error}. Received: "
            f"{settings.position_options!r}"
        )
    except (TypeError, ValueError) as error:
        found.append(f"--position-options: {error}")
    return found
