"""The folder of an experiment, which is of one experiment only."""

import pathlib

from keras_tupe._json_file import read_json_object
from keras_tupe.data import write_json
from training.command.checks import no_folder

RECORD = "experiment.json"


def folder_problems(out, identity):
    """Returns sentences about a folder that is of something else.

    Args:
        out: the folder; there may be none yet.
        identity: what it must be of, a dictionary of JSON values.
    """
    out = pathlib.Path(out)
    wrong = no_folder(out)
    if wrong:
        return wrong
    names = {entry.name for entry in out.iterdir()} - {".lock"} if out.is_dir() else set()
    if not names:
        return []
    try:
        before = read_json_object(out / RECORD)["identity"]
        changes = [
            f"{name}: {before.get(name)!r} there, {identity.get(name)!r} here"
            for name in sorted({*before, *identity})
            if before.get(name) != identity.get(name)
        ]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return [
            "--out must be a new folder, or one that training.experiment made. "
            f"Received: {str(out)!r}, without a readable {RECORD}"
        ]
    if not changes:
        return []
    return [
        "--out holds another experiment: choose another folder for each. "
        f"Received: {str(out)!r}, {'; '.join(changes)}"
    ]


def begin(out, identity, command):
    """Writes down whose folder it is, where that is not written yet.

    Args:
        out: the folder, which is there.
        identity: as in `folder_problems`.
        command: the command line.
    """
    path = pathlib.Path(out) / RECORD
    if not path.exists():
        write_json(path, {"identity": identity, "command": command})
