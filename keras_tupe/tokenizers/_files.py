"""Files of vocabularies, read."""

import os
import pathlib


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
