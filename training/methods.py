"""Prints the table of positional methods, made from the registry.

    keras-tupe methods
    keras-tupe methods --update README.md

--update writes the table with four columns, without options and lengths.
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
    rows = [
        [name, what, _options(method), length(method), kinds, source]
        for (name, what, kinds, source), method in zip(_rows(), _methods().values(), strict=True)
    ]
    return table(["name", "what it is", "options", "length", "patterns", "source"], rows)


def short_table():
    """Returns the same table with four columns, as a README has it."""
    return table(["name", "what it is", "patterns", "source"], _rows())


def length(method):
    """Returns which sequences a method takes, in words.

    Args:
        method: a `PositionMethod`.
    """
    if not method.has_length_limit(method.options):
        return "any"
    clips = "k" in method.options and not method.has_length_limit({**method.options, "k": 1})
    return "`max_sequence_length`" + (", any with `k`" if clips else "")


def _methods():
    from keras_tupe import positions

    return dict(sorted(positions.METHODS.items()))


def _rows():
    return [
        [f"`{name}`", method.summary, patterns(method), method.source]
        for name, method in _methods().items()
    ]


def patterns(method):
    """Returns which attention patterns a method is defined for, in words.

    Args:
        method: a `PositionMethod`.
    """
    from keras_tupe import attention_patterns

    fitting = [x for x in attention_patterns.PATTERNS if x not in method.refused_patterns]
    if len(fitting) == len(attention_patterns.PATTERNS):
        return "all"
    return ", ".join(f"`{name}`" for name in fitting)


def _options(method):
    return ", ".join(f"`{key}={value!r}`" for key, value in method.options.items()) or "-"


def updated(text):
    """Returns a text with the table of methods replaced, with four columns.

    Raises:
        ValueError: if the comments around it are not there.
    """
    return replaced(text, COMMAND, short_table())


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of the table."""

    update: str | None = setting(None, "File whose table of four columns is made anew.")


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
