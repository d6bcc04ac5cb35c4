"""The command line of `benchmarks.gpu`."""

import argparse
import dataclasses
import pathlib

from benchmarks import _settings, _training_settings
from keras_tupe import SIZES, positions

FILES = ("gpu.json", "gpu.md")


@dataclasses.dataclass(frozen=True)
class Settings:
    """What to measure and where to write.

    Attributes:
        sizes: names of sizes.
        positions: names of methods; the first is the baseline.
        precisions: `float32`, `bfloat16`.
        lengths: sequence lengths, in tokens.
        steps: number of timed steps.
        tokens: tokens of a batch.
        vocabulary_size: number of tokens known.
        peak_flops: operations per second that the device can do at most, or `None`.
        product_width: width of the matrix product.
        out: folder to write.
    """

    sizes: tuple
    positions: tuple
    precisions: tuple
    lengths: tuple
    steps: int
    tokens: int
    vocabulary_size: int
    peak_flops: float | None
    product_width: int
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

    def number(name):
        return checked(_settings._whole_number, f"--{name.replace('_', '-')}", getattr(given, name))

    def choices(name, known):
        return checked(_training_settings.choices, f"--{name}", getattr(given, name), known)

    if unknown:
        problems.append(f"There are no such options; --help lists them. Received: {unknown}")
    settings = Settings(
        sizes=choices("sizes", SIZES),
        positions=choices("positions", positions.METHODS),
        precisions=choices("precisions", _training_settings.PRECISIONS),
        lengths=checked(_settings._lengths, given.lengths),
        steps=number("steps"),
        tokens=number("tokens"),
        vocabulary_size=checked(_training_settings._vocabulary, given.vocabulary_size),
        peak_flops=given.peak_flops and checked(_peak_flops, given.peak_flops),
        product_width=number("product_width"),
        out=checked(_settings._out, given.out),
    )
    if problems:
        parser.exit(2, "".join(f"{parser.prog}: {problem}\n" for problem in problems))
    return settings


def _peak_flops(text):
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise ValueError(
            "--peak-flops must be operations per second, above 0, such as 312e12. "
            f"Received: {text!r}"
        )
    return value


def _parser(description):
    parser = argparse.ArgumentParser(
        prog="gpu",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )

    def add(name, default, text, shown=None):
        # read as text, so that all mistakes can be told at once
        parser.add_argument(name, default=default, help=f"{text} Default: {shown or default}.")

    add("--sizes", "base", f"Sizes of the model, by commas: {', '.join(SIZES)}.")
    add("--positions", "absolute,tupe_r,qkr_4", "Position methods, by commas; the first is first.")
    add("--precisions", "bfloat16,float32", "Precisions, by commas.")
    add("--lengths", "512,128", "Sequence lengths in tokens, each > 0, by commas.")
    add("--steps", "30", "Timed steps of each, an integer > 0.")
    add("--tokens", "32768", "Tokens of a batch, > 0.")
    add("--vocabulary-size", "32768", "Number of tokens known.")
    add("--peak-flops", None, "Operations per second in bfloat16.", "of a table of devices")
    add("--product-width", "8192", "Width of the matrix product, > 0.")
    add("--out", "benchmarks/results/training", f"Folder to write {' and '.join(FILES)} to.")
    return parser
