"""Files of vocabularies, which are either complete or not there."""

import os
import pathlib


def write_bytes(path, content):
    """Writes bytes to a path, or replaces what is there, through a file beside it."""
    temporary = pathlib.Path(path).with_name(f".unfinished-{os.getpid()}-{pathlib.Path(path).name}")
    try:
        temporary.write_bytes(content)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def read_bytes(path, what):
    """Returns the content of a file; `what` says in a `FileNotFoundError` what it should hold."""
    try:
        return pathlib.Path(path).read_bytes()
    except (FileNotFoundError, IsADirectoryError) as error:
        raise FileNotFoundError(
            f"There is no {what} under this name. Give the path of a file. "
            f"Received: {os.fspath(path)!r}"
        ) from error


def read_text(path, what):
    """As `read_bytes`, of UTF-8, with a byte order mark or without."""
    try:
        return read_bytes(path, what).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"A {what} must be a UTF-8 text file. Received: {os.fspath(path)!r}, which is not UTF-8"
        ) from error
