"""Where exports may be written: never over somebody else's files."""

import pathlib

from keras_tupe._new_folder import new_folder

CARD = "card.json"


def check_destination(path):
    """Raises `ValueError` if `path` exists and is not an export of this package.

    Called before long work starts, and again before the result is moved to where it belongs.

    Args:
        path: of the folder to write.
    """
    path = pathlib.Path(path)
    if path.is_dir() and (not any(path.iterdir()) or (path / CARD).is_file()):
        return
    if path.exists() or path.is_symlink():
        raise ValueError(
            f"The output folder exists and holds no {CARD}, so it was not made by keras_tupe and "
            f"is left alone. Choose another folder, or remove this one. Received: {str(path)!r}"
        )


def replaceable_folder(path):
    """Opens a folder that takes its name when all is written; an earlier export is replaced.

    Args:
        path: of the folder to write; what is there must be an export of this package.

    Returns:
        Context manager that gives the path of a folder beside it, to write into.
    """
    return new_folder(pathlib.Path(path).resolve(), check_destination)


def check_empty(path):
    """Raises `ValueError` if there is something at `path` but an empty folder (no link to one)."""
    path = pathlib.Path(path)
    is_empty = path.is_dir() and not path.is_symlink() and not any(path.iterdir())
    if not is_empty and (path.exists() or path.is_symlink()):
        raise ValueError(
            "The output folder exists and is not empty, or is a link. Choose another one, or "
            f"remove it. Received: path={str(path)!r}"
        )


def new_export(path):
    """As `new_folder`, for one SavedModel: an empty folder may be there."""
    return new_folder(path, check_empty)
