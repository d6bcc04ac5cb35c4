"""Tables of rows of result files, as the marker `result-table` asks for them."""

import pathlib
import re

from docs.results.fields import filled, lookup, matches, parts, step
from training.command import report as tables

_UNBROKEN = "\N{NO-BREAK SPACE}"  # numbers stay on one line, and a wide table scrolls
_OPTIONS = ("rows", "where", "sort", "with", "base")


def result_table(files, pattern, options, columns):
    """Returns a Markdown table.

    Args:
        files: a `ResultFiles`.
        pattern: path of a file, or of several with `*`.
        options: list of pairs of name and value.
        columns: list of pairs of header and template.

    Raises:
        ValueError: if an option is unknown.
        LookupError: if a file, a row or a field is not there.
    """
    given = dict(options)
    if unknown := sorted(given.keys() - set(_OPTIONS)):
        raise ValueError(f"An option must be one of {list(_OPTIONS)}. Received: {unknown}")
    paths = [value for name, value in options if name == "rows"]
    rows = _rows(files, pattern, paths)
    if "where" in given:
        rows = [row for row in rows if matches(row, given["where"])]
    if "with" in given:
        rows = _joined(files, rows, given["with"])
    if "sort" in given:
        path = given["sort"].removeprefix("-")
        rows.sort(key=lambda row: lookup(row, path), reverse=given["sort"].startswith("-"))
    if not rows:
        raise LookupError(f"A table must have rows. Received: none in {pattern!r}, {options}")
    base = step(rows, given["base"]) if "base" in given else None
    cells = [[filled(template, row, base) for _, template in columns] for row in rows]
    numbers = [
        index
        for index, column in enumerate(zip(*cells, strict=True))
        if index and all(re.match(r"[-+]?\d|-$", cell) for cell in column)
    ]
    for row in cells:
        row[:] = [
            text.replace(" ", _UNBROKEN) if index in numbers else text
            for index, text in enumerate(row)
        ]
    return tables.table([header for header, _ in columns], cells, right=numbers)


def _rows(files, pattern, paths):
    """Returns the rows at some paths of all files that match, each with `key` and `folder`."""
    found = []
    for name in files.matching(pattern):
        files.shown.add(name)
        folder = {"folder": pathlib.PurePath(name).parent.name}
        record = files.record(name)
        found += [folder | row for path in paths for row in _rows_at(record, path)]
        found += [] if paths else [folder | record]
    return found


def _rows_at(record, path):
    """Returns the dictionaries that a path names; `[*]` stands for every key."""
    found = [(None, record)]
    for part in parts(path):
        if part == "*":
            found = [(key, step(value, key)) for _, value in found for key in value]
        else:
            found = [(part, step(value, part)) for _, value in found]
    rows = []
    for key, value in found:
        for row in value if isinstance(value, list) else [value]:
            if not isinstance(row, dict):
                raise LookupError(f"Rows must be dictionaries. Received: {row!r} at {path!r}")
            rows.append({"key": key} | row)
    return rows


def _joined(files, rows, words):
    """Returns rows with the fields that the equal row of another file has besides."""
    name, path, *keys = words.split()
    others = {tuple(lookup(row, key) for key in keys): row for row in _rows(files, name, [path])}
    joined = []
    for row in rows:
        values = tuple(lookup(row, key) for key in keys)
        if values not in others:
            raise LookupError(
                f"{name} must have a row of each method. Received: no row of {values}"
            )
        other = others[values]
        joined.append(other | {k: v for k, v in row.items() if v is not None or k not in other})
    return joined
