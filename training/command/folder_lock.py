"""One process at a time in a folder, and only in one of its own program."""

import contextlib
import datetime
import fcntl
import functools
import json
import os
import pathlib
import shlex
import socket
import sys
import threading
import time

from keras_tupe._json_file import parse_json
from training.command.out_folder import check_own

LOCK = ".lock"
BEAT_SECONDS = 5  # between two signs of life
SILENT_SECONDS = 30  # without one: whoever held the folder on another host is dead
_LOOK_SECONDS = 0.1
_WRITE_SECONDS = 1
_COMMAND_CHARACTERS = 300


class FolderLock:
    """Holds a folder for this process, as a context manager.

    The lock is the kernel's (`flock`): it goes with the process, and a killed one leaves nothing to
    clean up. Processes that this one starts do not inherit it: each locks the folder that it
    writes, and keeps it if this one is killed. `.lock` says who holds the folder, and is removed at
    the end.

    Some file systems share files between hosts, but not locks. So the holder touches its file every
    `BEAT_SECONDS`; who gets the lock, but finds the file of a process of another host, waits until
    that has been silent for `SILENT_SECONDS`. (Two hosts that start within the same moment on such
    a file system are not told apart.) Where there are no locks at all, the folder is refused.

    Args:
        folder: made if needed, and removed again if it is still empty at the end.
        program: name of the command that makes such folders, by which the folder of another one is
            refused, as `check_own` does; `None` leaves that out.
        worker: number of this process among those of one run, which share the folder. The first,
            0, is the one that writes.
        run: text that the workers of one run share and others do not; `None` for a run of one.
        beside: whether the lock is beside the folder, `.NAME.lock`, for one (or a file) that comes
            into its place at once when it is complete.
        seconds: how long to wait for a holder of the same `run`.

    Raises:
        ValueError: from `with`, if another process works in the folder, it is not of this program,
            or it cannot be made or locked.
    """

    def __init__(self, folder, program=None, *, worker=0, run=None, beside=False, seconds=0):
        self._out = self._folder = pathlib.Path(folder)
        name = LOCK
        if beside:
            real = pathlib.Path(os.path.realpath(folder))
            self._folder, name = real.parent, f".{real.name}{LOCK}"
        self._first = self._folder / name
        self._path = self._folder / (f"{name}-{worker}" if worker else name)
        self._program, self._run, self._seconds = program, run, seconds
        self._file = None

    def __enter__(self):
        self._new = [path for path in (self._folder, *self._folder.parents) if not path.exists()]
        start = time.monotonic()
        while self._file is None:
            try:
                self._file = self._taken()
            except _HeldError as held:
                if time.monotonic() - start >= self._patience(held.owner):
                    raise self._refusal(held.owner) from None
                time.sleep(_LOOK_SECONDS)
        try:
            self._check_dead()
            self._write_owner()
            self._check_first(start + self._seconds)
            if self._program is not None:
                check_own(self._folder, self._program)
        except BaseException:
            self._release()
            raise
        self._stop = threading.Event()
        self._beat = threading.Thread(target=_beat, args=(self._file, self._stop), daemon=True)
        self._beat.start()
        return self

    def __exit__(self, *exception):
        self._stop.set()
        self._beat.join()
        self._release()

    def _patience(self, owner):
        """Returns for how many seconds to ask again."""
        if owner.get("run") == self._run:
            return self._seconds
        # the holder may not have said yet who it is, or only be looking (`_first_of_others`)
        return _WRITE_SECONDS if self._run is not None or not owner else 0

    def _taken(self):
        """Returns the open file, locked, or `None` if it was removed meanwhile."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._not_writable(error) from None
        try:
            # not inherited by processes that this one starts
            file = open(self._path, "a+b")  # noqa: SIM115
        except FileNotFoundError:  # another process has just removed its empty folder
            return None
        except OSError as error:
            raise self._not_writable(error) from None
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = _owner(file)
            file.close()
            raise _HeldError(owner) from None
        except OSError as error:
            file.close()
            raise ValueError(
                "--out must be on a file system with locks, without which two runs may destroy "
                f"each other ({error.strerror}). Choose another folder, or have locks switched on. "
                f"Received: {str(self._out)!r}"
            ) from None
        if not _is_file_at(file, self._path):  # its holder ended just now, and removed it
            file.close()
            return None
        return file

    def _check_dead(self):
        """Waits for a sign of life of a holder on another host, whose lock this one may not see."""
        owner = _owner(self._file)
        if owner.get("kernel") in (None, _kernel()):
            return
        print(
            f"The folder {str(self._out)!r} was last held by {_words(owner)}: looking for a sign "
            f"of life for {SILENT_SECONDS} s.",
            file=sys.stderr,
            flush=True,
        )
        before, end = _touched(self._path), time.monotonic() + SILENT_SECONDS
        while time.monotonic() < end:
            time.sleep(_LOOK_SECONDS)
            if _touched(self._path) != before:
                self._file.close()
                self._file = None  # it is not ours to remove
                raise self._refusal(owner)

    def _check_first(self, end):
        """Refuses a worker where the first worker of another run holds the folder until `end`.

        The file may tell of a dead one for a moment, until the new one has written its own.
        """
        while self._path != self._first:
            owner = self._first_of_others()
            if not owner:
                return
            if time.monotonic() >= end:
                raise self._refusal(owner)
            time.sleep(_LOOK_SECONDS)

    def _first_of_others(self):
        """Returns the owner if the first worker of another run holds the folder, else `None`."""
        with contextlib.suppress(FileNotFoundError), open(self._first, "rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                owner = _owner(file)
                return owner if owner.get("run") != self._run else None
        return None

    def _write_owner(self):
        owner = {
            "process": os.getpid(),
            "host": socket.gethostname(),
            "kernel": _kernel(),
            "since": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M:%S UTC"),
            "command": shlex.join(sys.orig_argv)[:_COMMAND_CHARACTERS],
            "run": self._run,
        }
        with contextlib.suppress(OSError):  # a full disk is told where it matters
            self._file.truncate(0)
            self._file.write(json.dumps(owner).encode("ascii"))
            self._file.flush()

    def _release(self):
        if self._file is not None:
            with contextlib.suppress(OSError):
                if _is_file_at(self._file, self._path):
                    self._path.unlink()
            with contextlib.suppress(OSError):  # what a full disk did not take
                self._file.close()
            self._file = None
        for path in self._new:
            with contextlib.suppress(OSError):  # something is in it by now
                path.rmdir()

    def _refusal(self, owner):
        return ValueError(
            "Another process works in --out: wait for its end, or choose another folder. "
            f"Received: {str(self._out)!r}, {_words(owner)}"
        )

    def _not_writable(self, error):
        return ValueError(
            f"--out must be a folder that can be written ({error.strerror}). "
            f"Received: {str(self._out)!r}"
        )


class _HeldError(Exception):
    def __init__(self, owner):
        self.owner = owner


def _beat(file, stop):
    while not stop.wait(BEAT_SECONDS):
        with contextlib.suppress(OSError):
            os.utime(file.fileno())


def _owner(file):
    """Returns what the holder wrote, `{}` if that cannot be read."""
    try:
        file.seek(0)
        owner = parse_json(file.read().decode("utf-8"))
    except (OSError, ValueError):
        return {}
    return owner if isinstance(owner, dict) else {"process": owner}  # as it was once written


def _words(owner):
    """Returns who holds a folder, as a phrase.

    Example:
        >>> _words({"process": 7, "host": "a", "since": "noon", "command": "python x.py"})
        'process 7 on host a, since noon: `python x.py`'
    """
    text = f"process {owner.get('process', 'unknown')}"
    for name, before in (("host", " on host {}"), ("since", ", since {}"), ("command", ": `{}`")):
        if name in owner:
            text += before.format(owner[name])
    return text


def _touched(path):
    """Returns when a file was last touched, asking anew (a network file system remembers)."""
    try:
        with open(path, "rb") as file:
            return os.fstat(file.fileno()).st_mtime_ns
    except OSError:
        return None


def _is_file_at(file, path):
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.stat(path))
    except OSError:
        return False


@functools.cache
def _kernel():
    """Returns what names the kernel, whose locks all of its processes see."""
    try:
        return pathlib.Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except (OSError, ValueError):
        return socket.gethostname()
