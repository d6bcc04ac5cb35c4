"""The table of a run, and its files."""

import json
import os
import pathlib
import tempfile

from training.command.folder_lock import FolderLock

_LOCK_SECONDS = 600  # others only write their files; what was measured must not be lost
HEADER = (
    "n",
    "batch",
    "method",
    "train",
    "inference",
    "train, CPU",
    "inference, CPU",
    "train ms",
    "inference ms",
    "peak MiB",
    "parameters",
)
TEXT = 2  # the column that is no number


def table(rows):
    """Returns the Markdown table of the rows; `-` stands for what was not measured."""
    lines = [_cells(row) for row in rows]
    widths = [max(map(len, column)) for column in zip(HEADER, *lines, strict=True)]

    def line(cells):
        padded = (
            cell.ljust(width) if index == TEXT else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )
        return f"| {' | '.join(padded)} |"

    rule = (
        "-" * (width + 2) if index == TEXT else "-" * (width + 1) + ":"
        for index, width in enumerate(widths)
    )
    return "\n".join([line(HEADER), f"|{'|'.join(rule)}|", *map(line, lines)])


def _cells(row):
    def number(key, form):
        return "-" if row.get(key) is None else format(row[key], form)

    name = row["label"] if row["by"] == "keras_tupe" else f"{row['by']}: {row['label']}"
    return (
        str(row["length"]),
        str(row["batch_size"]),
        name,
        number("train_ratio", ".2f"),
        number("inference_ratio", ".2f"),
        number("train_cpu_ratio", ".2f"),
        number("inference_cpu_ratio", ".2f"),
        number("train_ms", ".1f"),
        number("inference_ms", ".1f"),
        number("peak_memory_mib", ".0f"),
        number("parameters", ","),
    )


def markdown(record):
    """Returns the page of a run.

    Args:
        record: what `methods.json` holds.
    """
    source, machine = record["source"], record["machine"]
    commit = source["commit"] or "unknown, not a git checkout"
    dirty = ", with uncommitted changes" if source["dirty"] else ""
    lines = [
        "# Cost of the position methods",
        "",
        f"Made by `{record['command']}`, commit {commit}{dirty}, on {machine['cores']} cores of "
        f"{machine['cpu']}; GPU: {machine['gpu'] or 'none'}.",
    ]
    for name in ("environment", "peer_environment"):
        if record[name]:
            lines.append(f"{name.capitalize().replace('_', ' ')}: {_facts(record[name])}.")
    lines += ["", *(f"- {line}" for line in record["definitions"])]
    if record["peer_left_out"]:
        lines.append(f"- Rows of transformers are left out: {record['peer_left_out']}.")
    lines += [f"- Failed: {problem}." for problem in record["problems"]]
    return "\n".join([*lines, "", table(record["rows"])]) + "\n"


def _facts(facts):
    pairs = {**facts.get("versions", {}), **{k: v for k, v in facts.items() if k != "versions"}}
    return ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in pairs.items())


def write(folder, record):
    """Writes `methods.json` and `methods.md`, each complete or not at all.

    Args:
        folder: `pathlib.Path`, made if it is not there.
        record: dictionary; see `markdown`.
    """
    contents = {"methods.json": json.dumps(record, indent=2) + "\n", "methods.md": markdown(record)}
    write_files(folder, contents)


def write_files(folder, contents):
    """Writes the files of one run, each complete or not at all, with none of another between.

    Args:
        folder: `pathlib.Path`, made if it is not there.
        contents: dictionary, name -> text.
    """
    with (
        FolderLock(folder, seconds=_LOCK_SECONDS),
        tempfile.TemporaryDirectory(dir=folder, prefix=".unfinished-") as temporary,
    ):
        for name, content in contents.items():
            (pathlib.Path(temporary) / name).write_text(content, encoding="utf-8")
        for name in contents:
            os.replace(pathlib.Path(temporary) / name, folder / name)
