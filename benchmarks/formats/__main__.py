"""Every position method in every format: how far what is loaded is from what was saved.

    python -m benchmarks.formats
    python -m benchmarks.formats --positions tupe_r,qkr_3

The largest difference |a - b| / max(1, |b|) of outputs over batches of 1 and 5 rows of 1, 7, 128
and 512 tokens. A run of all methods writes `formats.json` to `--out`, of which the documentation
makes its table. Ends with an error if a difference is above the format's limit.
"""

import pathlib
import sys

from benchmarks.formats.settings import Settings
from training.command.report import table
from training.command.settings import parse
from training.command.shell import sentences


def main(arguments=None):
    """Runs the command line."""
    settings = parse(Settings, arguments, __doc__, "formats")
    from benchmarks.formats.cells import LIMITS, collect
    from benchmarks.harness import provenance, report

    record = provenance.origin("formats", arguments)
    with sentences("formats", "Nothing was written."):
        record["cells"] = collect(settings.methods())
    if settings.is_all():
        report.write_json(pathlib.Path(settings.out, "formats.json"), record)
    print(markdown(record))
    over = [
        f"{position} in {name}: {value:.1e}"
        for position, row in record["cells"].items()
        for name, value in row.items()
        if not value <= LIMITS[name]
    ]
    if over:
        sys.exit(f"formats: above the limit: {'; '.join(over)}")


def markdown(record):
    """Returns the table of a record: a row per method, the limits in the header."""
    from benchmarks.formats.cells import CELLS, LIMITS

    header = ["method", *(f"{name} (<= {LIMITS[name]:.0e})" for name in CELLS)]
    return table(
        header,
        [
            [f"`{position}`", *(f"{row[name]:.0e}" if row[name] else "0" for name in CELLS)]
            for position, row in record["cells"].items()
        ],
    )


if __name__ == "__main__":
    main()
