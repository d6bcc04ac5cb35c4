"""The pages of results: hand-written text with numbers and tables of `benchmarks/results`.

A page of `docs/pages/results` types no number that a result file has. It names it, by a path into
the file: keys in brackets, `[-1]` of a list, or `[length=512; label=shaw]` for the only such row.

In a sentence: {result}`squad/results.json f1[mean]:.1f`.

A table, of one line per column (header and template) below its options:

    ```{result-table} methods.json
    :rows: rows
    :where: length=512; by=keras_tupe
    :sort: train_ratio
    :with: memory/methods.json rows label length
    :base: label=absolute
    method: `{label}`
    train step: {train_ratio:.2f}
    peak memory: {peak_memory_mib:x.2f}
    ```

- `rows`, any number of times: a path to a list, or to a dictionary, which is one row; `[*]` stands
  for every key, and `{key}` is the last of them. Without `rows` a file is a row. A file name may
  have `*` (`{folder}` is the file's folder); `valid.csv` and the like have `rows`.
- `where`: only rows whose fields have these values, `a|b` for either. `sort`: by a field, upwards,
  or with `-` downwards; else in the file's order.
- `with`: the fields of a second file (path of its rows, fields that must be equal).
- `base`: the row that the form `x` divides by.
- Forms are Python's (`.2f`, `,`, `+.1f`, `.0%`), and `x.2f`: as a multiple of the base;
  `+-.2f`: mean and half of the interval of `{mean, low, high}`; `each .1f`: of a list; `time`: of
  seconds. A cell with a field that is null is `-`.

A report that a command has written, whole or some `:section: HEADING`, perhaps behind a sentence
(`:fold: SENTENCE`), and the command, commit and machine of a result:

    ```{result-report} ablation/ablation.md
    :section: Steps, size and speed
    ```

    ```{result-origin} ablation/ablation.json
    ```

Every result file must be in a table or a report of some page.
"""

import re

from docs.results.fields import filled
from docs.results.files import ROOT, ResultFiles
from docs.results.reports import result_origin, result_report
from docs.results.tables import result_table

PAGES = ROOT / "docs" / "pages" / "results"
_BLOCK = re.compile(r"^```\{(result-\w+)\} *(\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_VALUE = re.compile(r"\{result\}`([^`\s]+)\s([^`]+)`")
_OPTION = re.compile(r":(\w+): *(.*)")


def pages(folder=PAGES, files=None):
    """Returns the pages of results, by their paths in the documentation.

    Args:
        folder: folder of the hand-written pages.
        files: a `ResultFiles`; default: those of `benchmarks/results`.

    Raises:
        ValueError: if a page asks for what is not there, or a file is shown by no page.
    """
    files = ResultFiles() if files is None else files
    found = {}
    for page in sorted(folder.glob("*.md")):
        try:
            found[f"results/{page.name}"] = expanded(page.read_text(encoding="utf-8"), files)
        except (LookupError, ValueError) as error:
            raise ValueError(f"docs/pages/results/{page.name}: {error.args[0]}") from error
    if missing := files.not_shown():
        raise ValueError(
            "Every file of benchmarks/results must be shown by a page of docs/pages/results, in a "
            "`result-table` or a `result-report`. "
            f"Received: not shown: {missing}"
        )
    return found


def expanded(text, files):
    """Returns the text of a page with its markers replaced by what the files have."""

    def block(match):
        kind, name, body = match.groups()
        lines = [line.strip() for line in body.splitlines() if line.strip()]
        options = [match.groups() for line in lines if (match := _OPTION.fullmatch(line))]
        rest = [line for line in lines if not _OPTION.fullmatch(line)]
        if kind == "result-table":
            return result_table(files, name, options, [_column(line) for line in rest])
        if kind == "result-report":
            return result_report(files, name, options)
        if kind == "result-origin":
            return result_origin(files, name)
        raise ValueError(
            "A marker must be `result-table`, `result-report` or `result-origin`. "
            f"Received: {kind!r}"
        )

    def value(match):
        name, field = match.groups()
        return filled(f"{{{' '.join(field.split())}}}", files.record(name))

    return _VALUE.sub(value, _BLOCK.sub(block, text))


def _column(line):
    """Returns header and template of a line."""
    header, colon, template = line.partition(":")
    if not colon:
        raise ValueError(f"A column must be a line HEADER: TEMPLATE. Received: {line!r}")
    return header.strip(), template.strip()
