"""Every position method in every format: how far what is loaded is from what was saved.

    python -m benchmarks.formats
    python -m benchmarks.formats --positions tupe_r,qkr_3
    python -m benchmarks.formats --update README.md

The largest difference |a - b| / max(1, |b|) of outputs over batches of 1 and 5 rows of 1, 7, 128
and 512 tokens. A run of all methods writes `formats.json` to `--out`; `--update` puts the table of
that file into a Markdown file and measures nothing. Ends with an error if a difference is above
the format's limit.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import dataclasses
import json
import pathlib
import shlex
import sys

from tqdm import tqdm

from benchmarks._format_cells import CELLS, LIMITS, measure
from benchmarks._machine import machine, source
from benchmarks._report import write_files
from keras_tupe import positions
from training.command.report_files import replaced_text
from training.command.settings import parse, setting
from training.command.tables import replaced, table

COMMAND = "benchmarks.formats --update README.md"


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of the command."""

    positions: str = setting("all", "Methods with commas between, or all.")
    out: str = setting("benchmarks/results", "Folder of formats.json.")
    update: str = setting("", "File whose table is to be made from formats.json; no measuring.")

    def methods(self):
        """Returns the names of the methods."""
        return sorted(positions.METHODS) if self.positions == "all" else self.positions.split(",")

    def problems(self):
        """Returns a sentence for each setting that cannot be."""
        unknown = [name for name in self.methods() if name not in positions.METHODS]
        if unknown:
            return [f"--positions must be of {sorted(positions.METHODS)}. Received: {unknown}"]
        return []


def markdown(record):
    """Returns the table of a record: a row per method, the limits in the header."""
    header = ["method", *(f"{name} (<= {LIMITS[name]:.0e})" for name in CELLS)]
    return table(
        header,
        [
            [f"`{position}`", *(f"{row[name]:.0e}" if row[name] else "0" for name in CELLS)]
            for position, row in record["cells"].items()
        ],
    )


def main(arguments=None):
    """Runs the command line."""
    arguments = sys.argv[1:] if arguments is None else arguments
    settings = parse(Settings, arguments, __doc__)
    file = pathlib.Path(settings.out, "formats.json")
    if settings.update:
        try:
            record = json.loads(file.read_text(encoding="utf-8"))
            page = pathlib.Path(settings.update)
            text = replaced(page.read_text(encoding="utf-8"), COMMAND, markdown(record))
            replaced_text(page, text)
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            sys.exit(f"formats: {file} and {settings.update}: {type(error).__name__}: {error}")
        return
    cells = {}
    with tqdm(total=len(settings.methods()) * len(CELLS), unit="cell", disable=None) as bar:
        for position in settings.methods():
            cells[position] = {}
            for name in CELLS:
                bar.set_description(f"{position}, {name}")
                cells[position][name] = measure(position, name)
                bar.update()
    record = {
        "command": shlex.join(["python", "-m", "benchmarks.formats", *arguments]),
        "source": source(),
        "machine": machine(),
        "cells": cells,
    }
    if settings.positions == "all":
        write_files(file.parent, {file.name: json.dumps(record, indent=1) + "\n"})
    print(markdown(record))
    over = [
        f"{position} in {name}: {value:.1e}"
        for position, row in cells.items()
        for name, value in row.items()
        if not value <= LIMITS[name]
    ]
    if over:
        sys.exit(f"formats: above the limit: {'; '.join(over)}")


if __name__ == "__main__":
    main()
