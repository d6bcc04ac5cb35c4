"""The command line of `benchmarks.data`."""

import argparse
import dataclasses
import pathlib
import re


@dataclasses.dataclass(frozen=True)
class Settings:
    """What to measure and where to write.

    Attributes:
        data: directory of prepared rows, or `None` for random rows.
        rows: rows of each turn, a multiple of `batch_size`.
        batch_size: rows of a batch.
        rounds: number of interleaved rounds.
        out: JSON file to write.
    """

    data: pathlib.Path | None
    rows: int
    batch_size: int
    rounds: int
    out: pathlib.Path


def parse(arguments, description):
    """Returns the `Settings` that a command line asks for.

    Raises:
        SystemExit: with code 2, after all mistakes were printed on standard error.
    """
    parser = argparse.ArgumentParser(
        prog="data",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    # read as text, so that all mistakes can be told at once
    add = parser.add_argument
    add("--data", help="Directory of prepared rows. Default: random rows.")
    add("--rows", default="10240", help="Rows of each turn, > 0. Default: 10240.")
    add("--batch-size", default="256", help="Rows of a batch; divides --rows. Default: 256.")
    add("--rounds", default="7", help="Interleaved rounds, > 0. Default: 7.")
    add("--out", default="benchmarks/results/data.json", help="JSON file. Default: %(default)s.")
    given = parser.parse_args(arguments)
    problems, numbers = [], {}
    for name in ("rows", "batch_size", "rounds"):
        text = getattr(given, name)
        if re.fullmatch(r"[1-9]\d{0,8}", text, re.ASCII):
            numbers[name] = int(text)
        else:
            option = f"--{name.replace('_', '-')}"
            problems.append(f"{option} must be an integer > 0. Received: {text!r}")
    if {"rows", "batch_size"} <= set(numbers) and numbers["rows"] % numbers["batch_size"]:
        problems.append(
            "--rows must be a multiple of --batch-size. "
            f"Received: {numbers['rows']} and {numbers['batch_size']}"
        )
    out = pathlib.Path(given.out)
    if out.is_dir():
        problems.append(f"--out must be the name of a file. Received: {given.out!r}, a folder")
    if problems:
        parser.exit(2, "".join(f"{parser.prog}: {problem}\n" for problem in problems))
    data = None if given.data is None else pathlib.Path(given.data)
    return Settings(data, **numbers, out=out)
