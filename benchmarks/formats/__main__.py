"""Every position method in every format: how far what is loaded is from what was saved.

    python -m benchmarks.formats
    python -m benchmarks.formats --positions tupe_r,qkr_3
    python -m benchmarks.formats --update README.md

The largest difference |a - b| / max(1, |b|) of outputs over batches of 1 and 5 rows of 1, 7, 128
and 512 tokens. A run of all methods writes `formats.json` to `--out`; `--update` puts the table of
that file into a Markdown file and measures nothing. Ends with an error if a difference is above
the format's limit.
"""

import json
import pathlib
import sys

from benchmarks.formats.settings import Settings
from training.command.report_files import replaced_text
from training.command.settings import parse
from training.command.shell import sentences
from training.command.tables import replaced, table

COMMAND = "benchmarks.formats --update README.md"


def main(arguments=None):
    """Runs the command line."""
    settings = parse(Settings, arguments, __doc__, "formats")
    from benchmarks.formats.cells import LIMITS, collect
    from benchmarks.harness import provenance, report

    file = pathlib.Path(settings.out, "formats.json")
    if settings.update:
        _update(settings.update, file)
        return
    record = provenance.origin("formats", arguments)
    with sentences("formats", "Nothing was written."):
        record["cells"] = collect(settings.methods())
    if settings.is_all():
        report.write_json(file, record)
    print(markdown(record))
    over = [
        f"{position} in {name}: {value:.1e}"
        for position, row in record["cells"].items()
        for name, value in row.items()
        if not value <= LIMITS[name]
    ]
    if over:
        sys.exit(f"formats: above the limit: {'; '.join(over)}")


def _update(page, file):
    """Puts the table of a record into a page."""
    page = pathlib.Path(page)
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
        replaced_text(page, replaced(page.read_text(encoding="utf-8"), COMMAND, markdown(record)))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        sys.exit(f"formats: {file} and {page}: {type(error).__name__}: {error}")


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
