"""All readers; cases of other folders of tests are what they are attacked with."""

import importlib
import pathlib
import sys

TESTS = pathlib.Path(__file__).resolve().parents[1]
_ROOMS = ("", "convert", "data/rows", "training")


def add_rooms():
    """Lets the modules of these folders be imported by their names."""
    sys.path += [str(TESTS / room) for room in _ROOMS if str(TESTS / room) not in sys.path]


def all_readers():
    """Returns the readers by name."""
    add_rooms()
    modules = [f"fuzz_{room}_readers" for room in ("data", "convert", "training", "model")]
    found = [reader for name in modules for reader in importlib.import_module(name).READERS]
    return {reader.name: reader for reader in found}
