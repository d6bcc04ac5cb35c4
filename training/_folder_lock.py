"""One process at a time in a folder."""

import fcntl
import os
import pathlib

LOCK = ".lock"


class FolderLock:
    """Holds a folder for this process, and for those that it starts, as a context manager.

    The lock goes with the process: a killed one leaves nothing to clean up.

    Args:
        folder: made if needed.

    Raises:
        ValueError: from `with`, if another process works in the folder, or it cannot be made.
    """

    def __init__(self, folder):
        self._folder = pathlib.Path(folder)
        self._file = None

    def __enter__(self):
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._file = open(self._folder / LOCK, "a+", encoding="utf-8")
        except OSError as error:
            raise ValueError(
                f"--out must be a folder that can be written ({error.strerror}). "
                f"Received: {str(self._folder)!r}"
            ) from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.seek(0)
            owner = self._file.read().strip() or "unknown"
            self._file.close()
            raise ValueError(
                "Another process works in --out: wait for its end, or choose another folder. "
                f"Received: {str(self._folder)!r}, process {owner}"
            ) from None
        except OSError as error:
            self._file.close()
            raise ValueError(
                f"--out must be on a file system with locks ({error.strerror}). "
                f"Received: {str(self._folder)!r}"
            ) from None
        self._file.truncate(0)
        self._file.write(str(os.getpid()))
        self._file.flush()
        return self

    def __exit__(self, *exception):
        self._file.close()
