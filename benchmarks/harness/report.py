"""Tables and pages of benchmarks, and the files that they are written to."""

import json
import pathlib

from training.command.folder_lock import FolderLock
from training.command.report import replaced_text, table

_LOCK_SECONDS = 600  # others only write their files; what was measured must not be lost


def table_of(columns, rows):
    """Returns the Markdown table of the rows; `-` stands for what was not measured.

    Args:
        columns: list of (heading, key of a row or function of it, format). What has the format
            `"s"` is text, at the left; all else is a number, at the right.
        rows: list of dictionaries.

    Example:
        >>> print(table_of([("method", "name", "s"), ("ms", "ms", ".1f")], [{"name": "t5"}]))
        | method | ms |
        |--------|---:|
        | t5     |  - |
    """

    def cell(row, key, form):
        value = key(row) if callable(key) else row.get(key)
        return "-" if value is None else format(value, form)

    return table(
        [heading for heading, _, _ in columns],
        [[cell(row, key, form) for _, key, form in columns] for row in rows],
        right=[index for index, (_, _, form) in enumerate(columns) if form != "s"],
    )


def made_by(record):
    """Returns the beginning of a page: by which command, and from which source."""
    source = record["source"]
    commit = source["commit"] or "unknown, not a git checkout"
    dirty = ", with uncommitted changes" if source["dirty"] else ""
    return f"Made by `{record['command']}`, commit {commit}{dirty}"


def cores_of(record):
    """Returns what computed, as `2 cores of NAME`."""
    return f"{record['machine']['cores']} cores of {record['machine']['cpu']}"


def facts_text(facts):
    """Returns what a process says about itself: its versions, then the rest."""
    pairs = {**facts.get("versions", {}), **{k: v for k, v in facts.items() if k != "versions"}}
    return ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in pairs.items())


def write(folder, name, record, page):
    """Writes `NAME.json` and `NAME.md`, and prints the page.

    Args:
        folder: path, made if it is not there.
        name: name of the benchmark.
        record: dictionary for the JSON file.
        page: text of the other.
    """
    contents = {f"{name}.json": _json(record), f"{name}.md": page}
    _write_files(pathlib.Path(folder), contents)
    print(page)
    print(f"written: {', '.join(str(pathlib.Path(folder, name)) for name in contents)}")


def write_json(path, record):
    """Writes a record alone, in a folder that is made if it is not there."""
    path = pathlib.Path(path)
    _write_files(path.parent, {path.name: _json(record)})


def print_json(record, out):
    """Prints a record, and writes it to a file if one is given."""
    text = _json(record)
    print(text, end="")
    if out:
        replaced_text(out, text)


def _json(record):
    return json.dumps(record, indent=2, ensure_ascii=False) + "\n"


def _write_files(folder, contents):
    """Writes the files of one run, each complete or not at all, with none of another between."""
    with FolderLock(folder, seconds=_LOCK_SECONDS):
        for name, content in contents.items():
            replaced_text(folder / name, content)
