"""The card of an export: what it is, what made it, and the hashes of its files."""

import hashlib
import json
import pathlib
import platform

from keras_tupe._commit import commit
from keras_tupe.export._folders import CARD


def write_card(folder, **facts):
    """Writes `card.json` into an export, with the hashes of all files that are there.

    Args:
        folder: the export.
        **facts: what to record: command, config, data, metrics; values that JSON knows.

    Returns:
        The content of the card, a dictionary.
    """
    folder = pathlib.Path(folder)
    files = sorted(file for file in folder.rglob("*") if file.is_file() and file != folder / CARD)
    card = {
        "made_by": "keras_tupe",
        "commit": commit(),
        "python": platform.python_version(),
        **facts,
        "sha256": {str(file.relative_to(folder)): _sha256(file) for file in files},
    }
    (folder / CARD).write_text(json.dumps(card, indent=2) + "\n", encoding="utf-8")
    return card


def _sha256(file):
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
