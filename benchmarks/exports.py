"""Inference of exported encoders: a position method, `absolute`, and KerasHub's BERT.

    python -m benchmarks.exports
    python -m benchmarks.exports --positions tupe_r,t5 --lengths 128 --rounds 100

Every encoder is exported at each length, loaded as a SavedModel and called through
`serving_default`, in interleaved rounds. Ratios are medians over rounds of times in the same round,
with their 95 % interval. Writes `exports.json` and `exports.md` to `--out`.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import dataclasses
import json
import pathlib
import shlex
import sys
import tempfile

from tqdm import tqdm

from benchmarks._export_cases import BASELINE, PEER, cases
from benchmarks._export_rounds import measure
from benchmarks._machine import machine, source
from benchmarks._report import write_files
from keras_tupe import SIZES, positions
from training.command.settings import parse, setting
from training.command.tables import table

HEADER = ["length", "batch", "encoder", "ms", "of absolute", "95 %", "of KerasHub's BERT", "95 %"]


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of the benchmark."""

    positions: str = setting("tupe_r", "Methods beside absolute, with commas between.")
    lengths: str = setting("128,512", "Lengths in tokens, with commas between.")
    batches: str = setting("1,16", "Rows per call, with commas between.")
    rounds: int = setting(60, "Counted calls of each encoder, >= 10.")
    size: str = setting("mini", f"Size of the encoders: {', '.join(SIZES)}.")
    out: str = setting("benchmarks/results", "Folder of the results.")

    def problems(self):
        """Returns a sentence for each setting that cannot be."""
        found = []
        if self.size not in SIZES:
            found.append(f"--size must be one of {sorted(SIZES)}. Received: {self.size!r}")
        if self.rounds < 10:
            found.append(f"--rounds must be at least 10. Received: {self.rounds}")
        for name in ("lengths", "batches"):
            if not all(word.isdigit() and int(word) > 0 for word in getattr(self, name).split(",")):
                given = getattr(self, name)
                found.append(f"--{name} must be integers > 0 with commas. Received: {given!r}")
        unknown = [name for name in self.positions.split(",") if name not in positions.METHODS]
        if unknown:
            found.append(f"--positions must be of {sorted(positions.METHODS)}. Received: {unknown}")
        return found

    def numbers(self, name):
        """Returns a setting with commas as a list of integers."""
        return [int(word) for word in getattr(self, name).split(",")]


def collect(settings):
    """Measures all lengths and batches; returns a list of rows."""
    found = []
    lengths, batches = settings.numbers("lengths"), settings.numbers("batches")
    total = len(lengths) * len(batches) * (settings.rounds + 2)
    with tqdm(total=total, unit="round", disable=None) as bar:
        for length in lengths:
            with tempfile.TemporaryDirectory() as folder:
                calls = cases(folder, settings.positions.split(","), settings.size, length)
                for batch in batches:
                    bar.set_description(f"length {length}, batch {batch}")
                    rows = measure(calls, length, batch, settings.rounds, bar.update)
                    found += [{"length": length, "batch": batch, **row} for row in rows]
    return found


def markdown(record):
    """Returns the page of a record."""
    lines = [
        [
            str(row["length"]),
            str(row["batch"]),
            row["encoder"],
            f"{row['ms']:.1f}",
            *(
                cell
                for other in (BASELINE, PEER)
                for cell in (
                    f"{row['ratios'][other]['median']:.3f}",
                    "{:.3f} to {:.3f}".format(*row["ratios"][other]["interval"]),
                )
            ),
        ]
        for row in record["rows"]
    ]
    size = record["settings"]["size"]
    return (
        "# Inference of exported encoders\n\n"
        f"`{record['command']}` at {record['source']['commit']} on {record['machine']['cores']} "
        f"cores ({record['machine']['cpu']}); size {size}, float32, "
        f"{record['settings']['rounds']} interleaved rounds; times of one call of "
        "`serving_default`, ratios of times in the same round.\n\n"
        f"{table(HEADER, lines)}\n"
    )


def main(arguments=None):
    """Runs the command line."""
    arguments = sys.argv[1:] if arguments is None else arguments
    settings = parse(Settings, arguments, __doc__)
    record = {
        "command": shlex.join(["python", "-m", "benchmarks.exports", *arguments]),
        "source": source(),
        "machine": machine(),
        "settings": {**dataclasses.asdict(settings), **dataclasses.asdict(SIZES[settings.size])},
    }
    record["settings"].pop("out")
    record["rows"] = collect(settings)
    contents = {"exports.json": json.dumps(record, indent=1) + "\n", "exports.md": markdown(record)}
    write_files(pathlib.Path(settings.out), contents)
    print(markdown(record))


if __name__ == "__main__":
    main()
