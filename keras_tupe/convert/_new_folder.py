"""A folder that is complete or not there."""

import contextlib
import os
import pathlib
import shutil


def check_is_new(path):
    """Raises `ValueError` if there is something at `path` already."""
    if os.path.lexists(path):
        raise ValueError(
            "The output folder must not exist yet: nothing is overwritten. Choose another one. "
            f"Received: {os.fspath(path)!r}"
        )


@contextlib.contextmanager
def new_folder(path):
    """Yields an empty folder beside `path`, which takes this name when the block succeeds.

    If the block fails, nothing stays behind.

    Args:
        path: the folder to make.

    Raises:
        ValueError: if it exists, before the block or after it.
    """
    path = pathlib.Path(os.path.abspath(path))
    check_is_new(path)
    missing = [parent for parent in path.parents if not parent.exists()]
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    try:
        yield partial
        check_is_new(path)
        partial.rename(path)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        for parent in missing:
            with contextlib.suppress(OSError):  # somebody else's file is in it by now
                parent.rmdir()
        raise
