"""Print the table of positional methods, made from the registry.

python -m training.methods
python -m training.methods --update README.md
"""

import argparse
import pathlib
import sys

from keras_tupe import positions
from training.command.report_files import replaced_text
from training.command.tables import replaced, table

COMMAND = "training.methods --update README.md"


def method_table():
    """Returns the Markdown table of all methods in the registry."""
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


def main(arguments=None):
    """Runs the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--update", type=pathlib.Path, metavar="FILE", help="file to update")
    path = parser.parse_args(arguments).update
    if path is None:
        print(method_table())
        return
    try:
        replaced_text(path, updated(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        sys.exit(f"methods: {error}")


if __name__ == "__main__":
    main()
