"""All commands, listed or run.

    keras-tupe
    keras-tupe pretrain --config laptop --data rows --out runs/tupe_r
    keras-tupe pretrain --help

`keras-tupe NAME` does what `python -m training.NAME` does, also in a folder that has a `training`
of its own. Lists are written by spaces or by commas. Dashes in a name are as good as underscores.
"""

import ast
import importlib
import pathlib
import sys

# `training` is the folder of this file, wherever that is installed.
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from training.command import shell
from training.command.kinds import nearest
from training.command.without_keras import version

_FOLDER = pathlib.Path(__file__).parent
# Names of before -> what to write.
MOVED = {
    "ablate": "study ablation",
    "experiment": "study",
    "probe": "study probe",
    "prune": "study prune",
    "check_method": "check",
    "check_task": "check",
    "methods": "list methods",
    "saved_models": "list saved_models",
    "evaluate_blimp": "evaluate blimp",
    "evaluate_perplexity": "evaluate perplexity",
    "evaluate_sts": "evaluate sts",
}
MOVED |= {f"finetune_{task}": f"finetune {task}" for task in ("glue", "squad", "seq2seq")}


def commands():
    """Returns all commands: a dictionary of name -> what it does, in one line.

    A command is a file beside this one, or a folder with a `__main__.py`; nothing is imported.
    """
    files = {path.parent.name: path for path in _FOLDER.glob("*/__main__.py")}
    files |= {path.stem: path for path in _FOLDER.glob("[!_]*.py")}
    return {name: _first_line(files[name]) for name in sorted(files)}


def _first_line(path):
    return ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))).splitlines()[0]


def help_text():
    """Returns what `--help` prints: how to write a command, all of them, and the exit codes."""
    found = commands()
    width = max(map(len, found))
    _, _, codes = shell.__doc__.partition("\n\n")
    return "\n".join(
        [
            "usage: keras-tupe NAME ... | NAME --help | --help | --version",
            "",
            __doc__.split("\n\n", 1)[1].strip("\n"),
            "",
            "Commands:",
            "",
            *(f"    {name:{width}}  {text}" for name, text in found.items()),
            "",
            codes.strip("\n"),
        ]
    )


def main(arguments=None):
    """Runs the command line; ends as the command does."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    if not words or words[0] in ("--help", "-h"):
        print(help_text())
        return
    if words[0] == "--version":
        print(f"keras-tupe {version()}")
        return
    name, known = words[0].replace("-", "_"), commands()
    if name in MOVED:
        print(
            f"keras-tupe: `{name}` is `keras-tupe {MOVED[name]}` now; see its --help. "
            f"Received: {' '.join(words)}",
            file=sys.stderr,
        )
        sys.exit(shell.WRONG)
    if name not in known:
        print(
            f"keras-tupe: There is no command {words[0]!r}; the nearest is "
            f"{nearest(name, known)!r}, and `keras-tupe --help` lists all. "
            f"Received: {' '.join(words)}",
            file=sys.stderr,
        )
        sys.exit(shell.WRONG)
    is_folder = (_FOLDER / name).is_dir()
    module = f"training.{name}.__main__" if is_folder else f"training.{name}"
    sys.exit(importlib.import_module(module).main(words[1:]))


if __name__ == "__main__":
    main()
