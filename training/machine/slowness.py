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
    size, rounds, began = sum(map(len, sources)), [], time.monotonic()
    while len(rounds) < _ROUNDS and time.monotonic() - began < _MOST_SECONDS:
        start = time.monotonic()
        for source in sources:
            ast.parse(source)
        rounds.append(time.monotonic() - start)
    return min(rounds) * _BYTES_PER_SECOND / size  # of the calmest moment
