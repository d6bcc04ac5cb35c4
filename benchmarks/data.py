"""Rows per second from prepared files to masked batches.

    python -m benchmarks.data --data DIR
    python -m benchmarks.data --rows 2560 --rounds 3

Times, in interleaved rounds, reading rows in random order, and making the batches of a training
step of them: masks of tokens and of whole words, in this thread and through tf.data with two
threads. `DIR` is what `python -m training.prepare` made; without it random rows of 512 tokens are
written to a temporary directory. Prints a table and writes all numbers to `--out`. A GPU of the
H200 kind takes in about 2,500 rows of 512 tokens per second. About a minute on two cores.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import contextlib
import json
import pathlib
import shlex
import sys
import tempfile

from tqdm import tqdm

from benchmarks import _data_cases, _data_directory, _data_settings
from benchmarks._machine import machine, source
from benchmarks._report import write_files
from keras_tupe.data.rows.prepared import PreparedRows


def main(arguments=None):
    """Runs the command line."""
    arguments = sys.argv[1:] if arguments is None else arguments
    settings = _data_settings.parse(arguments, description=__doc__)
    with contextlib.ExitStack() as stack:
        if settings.data is None:
            folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory())) / "rows"
            _data_directory.write_random_rows(folder, 2 * settings.rows)
        else:
            folder = settings.data
        try:
            rows = PreparedRows(folder)
        except (FileNotFoundError, ValueError) as error:
            sys.exit(f"data: {error}")
        cases, left_out = _data_cases.cases_for(rows, settings)
        total = (settings.rounds + 1) * len(cases)
        with tqdm(total=total, unit="turn", disable=None) as bar:
            found = _data_cases.measure(cases, settings.rounds, settings.rows, bar.update)
        record = {
            "command": shlex.join(["python", "-m", "benchmarks.data", *arguments]),
            "source": source(),
            "machine": machine(),
            "data": str(settings.data) if settings.data else "random rows",
            "rows": len(rows),
            "length": rows.length,
            "vocabulary_size": rows.vocabulary.size,
            "batch_size": settings.batch_size,
            "rows_per_turn": settings.rows,
            "rounds": settings.rounds,
            "definition": _data_cases.DEFINITION,
            "left_out": left_out,
            "cases": found,
        }
    write_files(settings.out.parent, {settings.out.name: json.dumps(record, indent=2) + "\n"})
    print(markdown(record))
    print(f"written: {settings.out}")


def markdown(record):
    """The page of a run."""
    machine_kind = record["machine"]
    commit = record["source"]["commit"] or "unknown, not a git checkout"
    dirty = ", with uncommitted changes" if record["source"]["dirty"] else ""
    lines = [
        f"Made by `{record['command']}`, commit {commit}{dirty}, on {machine_kind['cores']} cores "
        f"of {machine_kind['cpu']}.",
        f"{record['rows']:,} rows of {record['length']} tokens, in batches of "
        f"{record['batch_size']}. {record['definition']}",
        *([record["left_out"]] if record["left_out"] else []),
        "",
        f"| {'case':<32} | rows/s | quartiles       |",
        f"|{'-' * 34}|-------:|-----------------|",
    ]
    for case in record["cases"]:
        lower, upper = case["quartiles"]
        quartiles = f"{lower:,.0f} - {upper:,.0f}"
        lines.append(f"| {case['label']:<32} | {case['rows_per_second']:6,.0f} | {quartiles:<15} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
