"""Rows per second from prepared files to masked batches.

    python -m benchmarks.data --data DIR
    python -m benchmarks.data --rows 2560 --rounds 3

Times, in interleaved rounds, reading rows in random order, and making the batches of a training
step of them: masks of tokens and of whole words, in this thread and through tf.data with two
threads. `DIR` is what `python -m training.prepare` made; without it random rows of 512 tokens are
written to a temporary directory. Prints a table and writes all numbers to `--out`. A GPU of the
H200 kind takes in about 2,500 rows of 512 tokens per second. About a minute on two cores.
"""

import contextlib
import pathlib
import tempfile

from benchmarks.data.settings import Settings
from training.command.settings import parse
from training.command.shell import sentences


def main(arguments=None):
    """Runs the command line."""
    settings = parse(Settings, arguments, __doc__, "data")
    from benchmarks.harness import provenance, report

    with sentences("data", "Nothing was written."):
        record = {**provenance.origin("data", arguments), **collect(settings)}
        report.write_json(settings.out, record)
    print(markdown(record))
    print(f"written: {settings.out}")


def collect(settings):
    """Measures everything that the settings ask for.

    Args:
        settings: a `Settings`.

    Returns:
        The record, but for where it comes from.

    Raises:
        FileNotFoundError, ValueError: if the directory is not one of prepared rows.
    """
    from tqdm import tqdm

    from benchmarks.data.cases import DEFINITION, cases_for, measure
    from benchmarks.data.random_rows import write_random_rows
    from keras_tupe.data.rows.prepared import PreparedRows

    with contextlib.ExitStack() as stack:
        folder = settings.data
        if folder is None:
            folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory())) / "rows"
            write_random_rows(folder, 2 * settings.rows)
        rows = PreparedRows(pathlib.Path(folder))
        cases, left_out = cases_for(rows, settings)
        total = (settings.rounds + 1) * len(cases)
        with tqdm(total=total, unit="turn", disable=None) as bar:
            found = measure(cases, settings.rounds, settings.rows, bar.update)
        return {
            "data": settings.data or "random rows",
            "rows": len(rows),
            "length": rows.length,
            "vocabulary_size": rows.vocabulary.size,
            "batch_size": settings.batch_size,
            "rows_per_turn": settings.rows,
            "rounds": settings.rounds,
            "definition": DEFINITION,
            "left_out": left_out,
            "cases": found,
        }


def markdown(record):
    """Returns the page of a run."""
    from benchmarks.harness import report

    def quartiles(case):
        lower, upper = case["quartiles"]
        return f"{lower:,.0f} - {upper:,.0f}"

    columns = (
        ("case", "label", "s"),
        ("rows/s", "rows_per_second", ",.0f"),
        ("quartiles", quartiles, "s"),
    )
    lines = [
        f"{report.made_by(record)}, on {report.cores_of(record)}.",
        f"{record['rows']:,} rows of {record['length']} tokens, in batches of "
        f"{record['batch_size']}. {record['definition']}",
        *([record["left_out"]] if record["left_out"] else []),
        "",
        report.table_of(columns, record["cases"]),
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
