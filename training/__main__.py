"""All commands, listed or run.

    keras-tupe
    keras-tupe pretrain --config laptop --data rows --out runs/tupe_r
    keras-tupe pretrain --help

`keras-tupe NAME` does what `python -m training.NAME` does, also in a folder that has a `training`
of its own. Lists are written by spaces or by commas. Dashes in a name are as good as underscores.
"""

import importlib
import pathlib
import sys

# `training` is the folder of this file, wherever that is installed.
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from training.command import shell
from training.command.settings import nearest
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
    found = shell.docstrings_of(_FOLDER.glob("[!_]*.py"))
    for path in _FOLDER.glob("*/__main__.py"):
        found[path.parent.name] = shell.docstrings_of([path])["__main__"]
    return {name: text.splitlines()[0] for name, text in sorted(found.items())}


def help_text():
    """Returns what `--help` prints: how to write a command, all of them, and the exit codes."""
    found = commands()
    width = max(map(len, found))
    _, _, codes = shell.__doc__.partition("\n\n")
    lines = "\n".join(f"    {name:{width}}  {text}" for name, text in found.items())
    about, codes = __doc__.split("\n\n", 1)[1].strip("\n"), codes.strip("\n")
    usage = "usage: keras-tupe NAME ... | NAME --help | --help | --version"
    return f"{usage}\n\n{about}\n\nCommands:\n\n{lines}\n\n{codes}"


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
        moved = f"`{name}` is `keras-tupe {MOVED[name]}` now; see its --help."
        shell.refuse("keras-tupe", f"{moved} Received: {' '.join(words)}")
    if name not in known:
        near = f"{nearest(name, known)!r}, and `keras-tupe --help` lists all"
        unknown = f"There is no command {words[0]!r}; the nearest is {near}."
        shell.refuse("keras-tupe", f"{unknown} Received: {' '.join(words)}")
    is_folder = (_FOLDER / name).is_dir()
    module = f"training.{name}.__main__" if is_folder else f"training.{name}"
    sys.exit(importlib.import_module(module).main(words[1:]))


if __name__ == "__main__":
    main()
