"""The folder that is made, and the one beside it in which the work is done."""

import contextlib
import fcntl
import json
import os
import pathlib
import shutil

from keras_tupe._json_file import read_json_object
from keras_tupe.data import PREPARATION_FILE, write_json
from training._prepare_settings import difference

_SETTINGS = "settings.json"
_LOCK = "lock"


def check_output(out, fingerprint):
    """Returns whether `out` is already there, made by the same settings from the same input.

    Raises:
        ValueError: if something else is there; the message says what differs.
    """
    out = pathlib.Path(out)
    record = out / PREPARATION_FILE
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return False
    try:
        theirs = _fingerprint(read_json_object(record)["fingerprint"])
    except (OSError, ValueError, KeyError):
        raise ValueError(
            f"The output folder exists and has no good {PREPARATION_FILE}, so it was not made here "
            f"and is left alone. Choose another --out, or remove this one. Received: {str(out)!r}"
        ) from None
    _compare(out, theirs, fingerprint)
    return True


def remove_rest(out):
    """Removes the work folder beside a finished `out`, of a run that was killed in its last step.

    One that another process is working in, or removing, is left to it.
    """
    folder = _work_folder_of(out)
    if folder.exists():
        with contextlib.suppress(ValueError, FileNotFoundError), _only_us(folder):
            _remove(folder)


@contextlib.contextmanager
def work_folder(out, fingerprint):
    """Yields the folder beside `out` that holds unfinished work, from an earlier run if it may.

    It is removed when the block ends well, and when the input turned out to be at fault
    (ValueError); otherwise it stays, and the same command goes on from there.

    Raises:
        ValueError: if another process works there, or the work was begun with other settings.
    """
    folder = _work_folder_of(out)
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(exist_ok=True)
    with _only_us(folder):
        if check_output(out, fingerprint):  # since the caller looked
            _remove(folder)
            raise ValueError(
                "Another process has just made this folder, from the same input and settings; "
                f"there is nothing left to do. Received: {str(out)!r}"
            )
        settings = folder / _SETTINGS
        if settings.exists():
            _compare(folder, _begun_with(settings), fingerprint)
        else:
            _clear(folder)
            write_json(settings, fingerprint)
        try:
            yield folder
        except ValueError:
            _remove(folder)
            raise
        _remove(folder)


def move_into_place(folder, out):
    """Gives a finished folder its final name, in one step that survives a loss of power."""
    out = pathlib.Path(out).resolve()
    for path in [*folder.iterdir(), folder]:
        _sync(path)
    os.rename(folder, out)  # also onto an empty folder
    _sync(out.parent)


def _work_folder_of(out):
    out = pathlib.Path(out).resolve()
    return out.with_name(f"{out.name}.unfinished")


def _remove(folder):
    """Removes a work folder; if killed in the middle, nobody takes the rest for work to go on."""
    (folder / _SETTINGS).unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)  # another process may look for its lock just now


def _clear(folder):
    """Removes what a removal that was killed has left."""
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name != _LOCK:
            path.unlink()


@contextlib.contextmanager
def _only_us(folder):
    with (folder / _LOCK).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(
                "Another process is preparing this folder. Wait for it, or choose another --out. "
                f"Received: {str(folder)!r}"
            ) from None
        yield


def _begun_with(path):
    try:
        return _fingerprint(read_json_object(path))
    except (OSError, ValueError) as error:
        raise ValueError(
            f"The settings of the unfinished work cannot be read ({error}). Remove its folder and "
            f"run the same command again. Received: {str(path)!r}"
        ) from None


def _fingerprint(value):
    if not isinstance(value, dict) or not value:
        raise ValueError("it has no settings")
    return value


def _compare(folder, theirs, ours):
    theirs = json.loads(json.dumps(theirs))
    ours = json.loads(json.dumps(ours))
    if theirs != ours:
        raise ValueError(
            "The folder was begun by a command with other settings. Choose another --out, or "
            f"remove this one. Received: {str(folder)!r}, which differs in: "
            f"{difference(ours, theirs)}"
        )


def _sync(path):
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
