"""Prints the table of positional methods, made from the registry.

python -m training.methods
python -m training.methods --update README.md
"""

import dataclasses
import pathlib

from training.command.report_files import replaced_text
from training.command.settings import parse, setting
from training.command.shell import sentences
from training.command.tables import replaced, table

COMMAND = "training.methods --update README.md"


def method_table():
    """Returns the Markdown table of all methods in the registry."""
    from keras_tupe import positions

    rows = [
        [
            f"`{name}`",
            method.summary,
            ", ".join(f"`{key}={value!r}`" for key, value in method.options.items()) or "-",
            _length(method),
            method.source,
        ]
        for name, method in sorted(positions.METHODS.items())
    ]
    return table(["name", "what it is", "options", "length", "source"], rows)


def _length(method):
    """Returns which sequences a method takes, in words."""
    if not method.has_length_limit(method.options):
        return "any"
    clips = "k" in method.options and not method.has_length_limit({**method.options, "k": 1})
    return "`max_sequence_length`" + (", any with `k`" if clips else "")


def updated(text):
    """Returns a text with the table of methods replaced.

    Raises:
        ValueError: if the comments around it are not there.
    """
    return replaced(text, COMMAND, method_table())


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of the table."""

    update: str | None = setting(None, "File whose table is made anew.")


def main(arguments=None):
    """Runs the command line."""
    settings = parse(Settings, arguments, __doc__, "methods")
    with sentences("methods", "Nothing was written."):
        if settings.update is None:
            print(method_table())
            return
        path = pathlib.Path(settings.update)
        replaced_text(path, updated(path.read_text(encoding="utf-8")))


if __name__ == "__main__":
    main()
