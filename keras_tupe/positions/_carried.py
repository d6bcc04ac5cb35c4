"""The file of a method outside the package, carried by a preset: source, name and SHA-256."""

import hashlib
import json
import pathlib

from keras_tupe._json_file import read_json_object

RECORD = "position_file.json"


def sha256_of(source):
    """Returns the SHA-256 of bytes, hexadecimal."""
    return hashlib.sha256(source).hexdigest()


def carry(folder, name, source):
    """Puts the file of a method into a preset, or removes the record of another one's.

    Args:
        folder: the preset.
        name: name of the method.
        source: content of its file, bytes; `None` for a method of the package.
    """
    folder = pathlib.Path(folder)
    if source is None:
        (folder / RECORD).unlink(missing_ok=True)
        return
    file = f"{name}.py"
    (folder / file).write_bytes(source)
    text = json.dumps({"file": file, "sha256": sha256_of(source)}, indent=4)
    (folder / RECORD).write_text(text, encoding="utf-8")


def carried(folder):
    """Returns the path of the file that a preset carries, and the SHA-256 that it should have.

    Args:
        folder: the preset.

    Returns:
        Path and text; `(None, None)` if it carries none.

    Raises:
        ValueError: if the record of the file is damaged, or names one outside the folder.
    """
    folder = pathlib.Path(folder)
    if not (folder / RECORD).is_file():
        return None, None
    record = read_json_object(folder / RECORD)
    file, sha256 = record.get("file"), record.get("sha256")
    if not isinstance(sha256, str) or not isinstance(file, str) or pathlib.Path(file).name != file:
        raise ValueError(
            f"A preset's {RECORD} must hold the name of a file beside it and its SHA-256. Save the "
            f"preset again. Received: {record!r}"
        )
    return folder / file, sha256


def check_unchanged(path, source):
    """Refuses a file that a preset carries and that was changed since.

    Args:
        path: path of a file, in a preset or elsewhere.
        source: its content, bytes.

    Raises:
        ValueError: if it was changed.
    """
    path = pathlib.Path(path)
    file, sha256 = carried(path.parent)
    if file is not None and file.name == path.name and sha256 != sha256_of(source):
        raise ValueError(
            "The file of the preset's position method was changed after the preset was saved: its "
            f"SHA-256 is {sha256_of(source)}, and {RECORD} says {sha256}. Get the preset again, "
            "or, if you trust the change, load a copy of the file from another folder. "
            f"Received: path={str(path)!r}"
        )


def how_to_load(folder, name):
    """Returns sentences on how the method of a preset becomes known, where it is not.

    Args:
        folder: the preset.
        name: name of its method.
    """
    path, sha256 = carried(folder)
    if path is None or path.stem != name:
        return (
            "The preset's position method is not known here. Name the Python file that defines it: "
            "--position-file on the command line, `keras_tupe.positions.load_file` in Python."
        )
    return (
        "The preset's position method is not known here. The preset carries the Python file that "
        "defines it, which is not run unless you ask for it. Read it, and if you trust it, load "
        f"it: --position-file {path} on the command line, "
        f"`keras_tupe.positions.load_file({str(path)!r})` in Python. Its SHA-256 is {sha256}."
    )
