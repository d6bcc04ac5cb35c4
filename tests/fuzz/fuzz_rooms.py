"""The cases of other folders of tests, which readers are attacked with."""

import pathlib
import sys

TESTS = pathlib.Path(__file__).resolve().parents[1]
_ROOMS = ("", "convert", "data/rows", "training")


def add_rooms():
    """Lets the modules of these folders be imported by their names."""
    sys.path += [str(TESTS / room) for room in _ROOMS if str(TESTS / room) not in sys.path]
