"""The command line of `benchmarks.training`."""

import argparse
import dataclasses
import difflib
import pathlib

from benchmarks import _peer_environment, _settings
from keras_tupe import SIZES, positions

FILES = ("training.json", "training.md")
PRECISIONS = ("float32", "bfloat16")
FEWER_TOKENS = {"base": 1024, "large": 512}
LARGE_VOCABULARY = {"base": 30522, "large": 30522}
DEFAULT_TOKENS, DEFAULT_VOCABULARY = 2048, 8192
SPECIAL_TOKENS = 5


@dataclasses.dataclass(frozen=True)
class Settings:
    """What to measure and where to write.

    Attributes:
        sizes: names of sizes.
        positions: names of methods; the first is the baseline.
        precisions: of `PRECISIONS`.
        lengths: sequence lengths, in tokens.
        rounds: number of interleaved rounds.
        tokens: tokens of a batch, or `None` for a number by size.
        vocabulary_size: number of tokens known, or `None` for a number by size.
        peers: whether to time the peers.
        peer_environment: folder of the Python environment of torch.
        out: folder to write.
    """

    sizes: tuple
    positions: tuple
    precisions: tuple
    lengths: tuple
    rounds: int
    tokens: int | None
    vocabulary_size: int | None
    peers: bool
    peer_environment: pathlib.Path
    out: pathlib.Path

    def tokens_of(self, size):
        """Returns the tokens of a batch of a size."""
        return self.tokens or FEWER_TOKENS.get(size, DEFAULT_TOKENS)

    def vocabulary_of(self, size):
        """Returns the vocabulary's size of a size."""
        return self.vocabulary_size or LARGE_VOCABULARY.get(size, DEFAULT_VOCABULARY)


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
    settings = Settings(
        sizes=checked(choices, "--sizes", given.sizes, SIZES),
        positions=checked(choices, "--positions", given.positions, positions.METHODS),
        precisions=checked(choices, "--precisions", given.precisions, PRECISIONS),
        lengths=checked(_settings._lengths, given.lengths),
        rounds=checked(_settings._whole_number, "--rounds", given.rounds),
        tokens=given.tokens and checked(_settings._whole_number, "--tokens", given.tokens),
        vocabulary_size=given.vocabulary_size and checked(_vocabulary, given.vocabulary_size),
        peers=given.peers,
        peer_environment=pathlib.Path(given.peer_environment).expanduser().absolute(),
        out=checked(_settings._out, given.out),
    )
    if settings.peers:
        problems += filter(None, [_peer_environment.problem(settings.peer_environment)])
    if problems:
        parser.exit(2, "".join(f"{parser.prog}: {problem}\n" for problem in problems))
    return settings


def choices(name, text, known):
    """Returns the items of a comma-separated list, all of which must be known.

    Raises:
        ValueError: naming the nearest known one.
    """
    items = _settings._items(name, text)
    for item in items:
        if item not in known:
            near = difflib.get_close_matches(item, known, n=1, cutoff=0)[0]
            raise ValueError(
                f"{name} must be of {sorted(known)}; the nearest is {near!r}. Received: {item!r}"
            )
    return tuple(items)


def _vocabulary(text):
    size = _settings._whole_number("--vocabulary-size", text)
    if size <= SPECIAL_TOKENS:
        raise ValueError(
            f"--vocabulary-size must be above the {SPECIAL_TOKENS} special tokens. "
            f"Received: {text!r}"
        )
    return size


def _parser(description):
    parser = argparse.ArgumentParser(
        prog="training",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )

    def add(name, default, text, shown=None):
        # read as text, so that all mistakes can be told at once
        parser.add_argument(name, default=default, help=f"{text} Default: {shown or default}.")

    add("--sizes", "mini", f"Sizes of the model, by commas: {', '.join(SIZES)}.")
    add("--positions", "absolute,tupe_r,qkr_4", "Position methods, by commas; the first is first.")
    add("--precisions", ",".join(PRECISIONS), "Precisions, by commas.")
    add("--lengths", "128,512", "Sequence lengths in tokens, each > 0, by commas.")
    add("--rounds", "11", "Interleaved rounds, an integer > 0.")
    add("--tokens", None, "Tokens of a batch, > 0.", f"{DEFAULT_TOKENS}; {FEWER_TOKENS}")
    shown = f"{DEFAULT_VOCABULARY}; {LARGE_VOCABULARY}"
    add("--vocabulary-size", None, "Number of tokens known.", shown)
    add("--out", "benchmarks/results/training", f"Folder to write {' and '.join(FILES)} to.")
    add("--peer-environment", str(_peer_environment.default_folder()), "Made if it is not there.")
    switch = argparse.BooleanOptionalAction
    parser.add_argument("--peers", action=switch, default=True, help="Time KerasHub, torch too.")
    return parser
