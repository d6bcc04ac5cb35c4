"""A command of several tasks, `keras-tupe NAME TASK ...`: each is a file of the folder `tasks`.

The docstring of such a file is its help, and its `Settings` are the options.
"""

import ast
import importlib
import sys

from training.command.kinds import nearest
from training.command.shell import WRONG


def tasks_in(folder):
    """Returns the tasks of a room, none of them imported: name -> its help.

    Args:
        folder: `pathlib.Path` of the room.
    """
    paths = sorted((folder / "tasks").glob("[!_]*.py"))
    return {path.stem: ast.get_docstring(ast.parse(path.read_text("utf-8"))) for path in paths}


def chosen(command, folder, description, arguments=None):
    """Returns the task that a command line begins with, and the other words.

    Args:
        command: its name.
        folder: as of `tasks_in`.
        description: what `--help` says before it lists the tasks.
        arguments: list of words, or `None` for those of this process.

    Returns:
        `(name, module, words)`.

    Raises:
        SystemExit: after `--help`, and where there is no such task.
    """
    words = list(map(str, sys.argv[1:] if arguments is None else arguments))
    known = tasks_in(folder)
    if words[:1] and words[0] in ("--help", "-h"):
        lines = [f"    {name:10}{text.splitlines()[0]}" for name, text in known.items()]
        print(f"usage: {command} TASK ... | TASK --help\n\n{description}\n\nTasks:\n")
        print("\n".join(lines))
        sys.exit(0)
    if not words or words[0] not in known:
        near = f"; the nearest is {nearest(words[0], known)!r}" if words else ""
        received = " ".join(words) or "none"
        print(
            f"{command}: TASK must be one of {[*known]}{near}. Received: {received}",
            file=sys.stderr,
        )
        sys.exit(WRONG)
    return words[0], importlib.import_module(f"training.{command}.tasks.{words[0]}"), words[1:]
