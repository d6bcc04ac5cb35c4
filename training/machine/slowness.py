"""How slow this machine is now, for guesses of what was measured on another."""

import ast
import pathlib
import sysconfig
import time

_FILES = ("argparse", "typing", "inspect", "tarfile", "subprocess")
_ROUNDS = 4
_MOST_SECONDS = 3.0  # for a machine that is busy
_BYTES_PER_SECOND = 5.2e6  # of two idle CPU cores


def slowness():
    """Returns how much longer this machine, as busy as it is, takes than two idle CPU cores.

    It parses some of Python's own files. That is work of one core in Python, as importing, reading
    and tracing are, which is what this is for.
    """
    root = pathlib.Path(sysconfig.get_path("stdlib"))
    sources = [(root / f"{name}.py").read_bytes() for name in _FILES]
    start, size = time.monotonic(), 0
    for source in _ROUNDS * sources:
        ast.parse(source)
        size += len(source)
        seconds = time.monotonic() - start
        if seconds > _MOST_SECONDS:
            break
    return seconds * _BYTES_PER_SECOND / size
