"""The command line of `benchmarks.methods`."""

import argparse
import dataclasses
import difflib
import os
import pathlib
import re

from benchmarks import _peer_environment
from keras_tupe import SIZES, positions

FILES = ("methods.json", "methods.md")


@dataclasses.dataclass(frozen=True)
class Settings:
    """What to measure and where to write.

    Attributes:
        positions: names of methods.
        files: paths of the files among them that define a method.
        lengths: sequence lengths, in tokens.
        rounds: number of interleaved rounds.
        size: name of the encoder's size.
        tokens: tokens of a batch; a batch has `tokens // length` sequences, at least one.
        times: whether to measure times.
        memory: whether to measure memory.
        peer: whether to time the peer.
        peer_environment: folder of the peer's Python environment.
        out: folder to write.
    """

    positions: tuple
    files: tuple
    lengths: tuple
    rounds: int
    size: str
    tokens: int
    times: bool
    memory: bool
    peer: bool
    peer_environment: pathlib.Path
    out: pathlib.Path


def parse(arguments=None, description=None):
    """Returns the `Settings` that a command line asks for.

    Raises:
        SystemExit: with code 2, after all mistakes were printed on standard error.
    """
    parser = _parser(description)
    given, unknown = parser.parse_known_args(arguments)
    problems = []

    def checked(function, *values):
        try:
            return function(*values)
        except ValueError as error:
            problems.append(str(error))

    if unknown:
        problems.append(f"There are no such options; --help lists them. Received: {unknown}")
    names, files = checked(_methods, given.positions, checked) or ((), ())
    settings = Settings(
        positions=names,
        files=files,
        lengths=checked(_lengths, given.lengths),
        rounds=checked(_whole_number, "--rounds", given.rounds),
        size=checked(_size, given.size),
        tokens=checked(_whole_number, "--tokens", given.tokens),
        times=given.times,
        memory=given.memory,
        peer=given.peer,
        peer_environment=pathlib.Path(given.peer_environment).expanduser().absolute(),
        out=checked(_out, given.out),
    )
    if not (settings.times or settings.memory):
        problems.append("There must be something to measure. Received: --no-times --no-memory")
    if settings.peer:
        problems += filter(None, [_peer_environment.problem(settings.peer_environment)])
    if problems:
        parser.exit(2, "".join(f"{parser.prog}: {problem}\n" for problem in problems))
    return settings


def _parser(description):
    parser = argparse.ArgumentParser(
        prog="methods",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )

    def add(name, default, text):
        # read as text, so that all mistakes can be told at once
        parser.add_argument(name, default=default, help=f"{text} Default: {default}.")

    switch = argparse.BooleanOptionalAction
    add("--positions", "all", "Position methods, or .py files that define one, by commas.")
    add("--lengths", "128,512,2048", "Sequence lengths in tokens, each > 0, by commas.")
    add("--rounds", "11", "Interleaved rounds, an integer > 0.")
    add("--size", "mini", f"Size of the encoder: {', '.join(SIZES)}.")
    add("--tokens", "2048", "Tokens of a batch, > 0; at least one sequence is taken.")
    add("--out", "benchmarks/results", f"Folder to write {' and '.join(FILES)} to.")
    add("--peer-environment", str(_peer_environment.default_folder()), "Made if it is not there.")
    parser.add_argument("--times", action=switch, default=True, help="Measure times.")
    parser.add_argument("--memory", action=switch, default=True, help="Measure peak memory.")
    parser.add_argument("--peer", action=switch, default=True, help="Time transformers' BERT too.")
    return parser


def _items(name, text):
    items = [item.strip() for item in text.split(",") if item.strip()]
    if not items:
        raise ValueError(f"{name} must name at least one, by commas. Received: {text!r}")
    return list(dict.fromkeys(items))


def _methods(text, checked):
    """Returns the names of the methods and the files that were loaded."""
    if text == "all":
        return tuple(sorted(positions.METHODS)), ()
    names, files = [], []
    for item in _items("--positions", text):
        name = item
        if item.endswith(".py"):
            name = checked(positions.load_file, item)
            files.append(str(pathlib.Path(item).resolve()))
        if name is not None and checked(positions.get, name):
            names.append(name)
    return tuple(dict.fromkeys(names)), tuple(files)


def _lengths(text):
    return tuple(_whole_number("--lengths", item) for item in _items("--lengths", text))


def _whole_number(name, text):
    if not re.fullmatch(r"\d{1,9}", text, re.ASCII) or int(text) == 0:
        raise ValueError(f"{name} must be an integer > 0. Received: {text!r}")
    return int(text)


def _size(name):
    if name not in SIZES:
        near = difflib.get_close_matches(name, SIZES, n=1, cutoff=0)[0]
        raise ValueError(
            f"--size must be one of {list(SIZES)}; the nearest is {near!r}. Received: {name!r}"
        )
    return name


def _out(text):
    folder = pathlib.Path(text)
    existing = next(path for path in [folder, *folder.absolute().parents] if path.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK):
        raise ValueError(
            "--out must be a folder that can be made or written to. Received: "
            f"{text!r}, where {str(existing)!r} is no folder that may be written to"
        )
    return folder
