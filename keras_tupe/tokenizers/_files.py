"""Files that are either complete or not there."""

import os
import tempfile


def write_bytes(path, content):
    """Writes `content` to `path` through a temporary file in the same folder.

    Args:
        path: file name; an existing file is replaced.
        content: bytes.
    """
    folder = os.path.dirname(os.path.abspath(path))
    handle, temporary = tempfile.mkstemp(dir=folder, prefix=".unfinished-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        # mkstemp makes files that only the owner may read; a vocabulary is no secret.
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def read_bytes(path, what):
    """Reads the file `path`.

    Raises:
        FileNotFoundError: if it is not there; `what` says what it should hold.
    """
    try:
        with open(path, "rb") as file:
            return file.read()
    except (FileNotFoundError, IsADirectoryError) as error:
        raise FileNotFoundError(
            f"There is no {what} under this name. Give the path of a file. "
            f"Received: {os.fspath(path)!r}"
        ) from error
