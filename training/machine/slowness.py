"""How slow this machine is now, for guesses of what was measured on another."""

import ast
import pathlib
import sysconfig
import time

_FILES = ("argparse", "typing", "inspect", "tarfile", "subprocess")
_ROUNDS = 4
_SECONDS = 0.44  # on two idle CPU cores


def slowness():
    """Returns how much longer this machine, as busy as it is, takes than two idle CPU cores.

    It parses some of Python's own files. That is work of one core in Python, as importing, reading
    and tracing are, which is what this is for.
    """
    root = pathlib.Path(sysconfig.get_path("stdlib"))
    sources = [(root / f"{name}.py").read_bytes() for name in _FILES]
    start = time.monotonic()
    for _ in range(_ROUNDS):
        for source in sources:
            ast.parse(source)
    return (time.monotonic() - start) / _SECONDS
