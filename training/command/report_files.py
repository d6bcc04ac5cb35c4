"""Files of a report: each is the new one or the old one, never a part."""

import functools
import os
import pathlib
import sys


def replaced_file(path, write_to):
    """Writes a file by a function of its path, whole or not at all.

    Args:
        path: the file.
        write_to: function of the path to write to.
    """
    path = pathlib.Path(path)
    partial = path.with_name(f".partial.{os.getpid()}.{path.name}")
    try:
        write_to(partial)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def replaced_text(path, text):
    """Writes a text file, whole or not at all."""
    replaced_file(path, lambda new: new.write_text(text, encoding="utf-8"))


def names_of(folder, *names):
    """Returns the files of a folder that are there, for the last line of a command.

    Example:
        >>> names_of("no-such-folder", "results.md")
        'no-such-folder: '
    """
    folder = pathlib.Path(folder)
    return f"{folder}: {', '.join(name for name in names if (folder / name).is_file())}"


def replaced_picture(path, draw_to):
    """Draws a picture, whole or not at all; says so where there is no matplotlib.

    Args:
        path: PNG file.
        draw_to: function of the path to write to. It imports matplotlib itself, since that is not
            on every machine that trains.
    """
    try:
        replaced_file(path, draw_to)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] != "matplotlib":
            raise
        _say_once(
            f"No {pathlib.Path(path).name}: matplotlib is not installed (pip install matplotlib)."
        )


@functools.cache
def _say_once(text):
    print(text, file=sys.stderr)
