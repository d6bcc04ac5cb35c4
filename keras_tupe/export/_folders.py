"""Export folders: complete or not there, and never over somebody else's."""

import contextlib
import os
import pathlib
import shutil

CARD = "card.json"


def check_destination(path):
    """Raises `ValueError` if `path` exists and is not an export of this package.

    Called before long work starts, and again before the result is moved into place.
    """
    path = pathlib.Path(path)
    if path.is_dir() and (not any(path.iterdir()) or (path / CARD).is_file()):
        return
    if path.exists():
        raise ValueError(
            f"The output folder exists and holds no {CARD}, so it was not made by keras_tupe and "
            f"is left alone. Choose another folder, or remove this one. Received: {str(path)!r}"
        )


@contextlib.contextmanager
def new_folder(path):
    """Yields an empty folder beside `path`, which takes its place when the block succeeds.

    A reader sees the old folder or the new one, never a part of either. If the block fails the
    new folder is removed and the old one stays.

    Args:
        path: the folder to make. One that is there is replaced if it is ours.

    Raises:
        ValueError: as `check_destination`.
    """
    path = pathlib.Path(path).resolve()
    check_destination(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    try:
        yield partial
        check_destination(path)
        old = path.with_name(f".{path.name}.{os.getpid()}.old")
        if path.exists():
            path.rename(old)
        partial.rename(path)
        shutil.rmtree(old, ignore_errors=True)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def check_new(path):
    """Raises `ValueError` if `path` is a file, or a folder that is not empty."""
    path = pathlib.Path(path)
    if path.exists() and not (path.is_dir() and not any(path.iterdir())):
        raise ValueError(
            "The output folder exists and is not empty. Choose another one, or remove it. "
            f"Received: path={str(path)!r}"
        )


@contextlib.contextmanager
def new_export(path):
    """As `new_folder`, for one SavedModel: a folder that has files in it is left alone.

    Raises:
        ValueError: as `check_new`.
    """
    check_new(path)
    with new_folder(path) as partial:
        yield partial
