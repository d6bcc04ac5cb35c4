"""The page of a run of `benchmarks.serving`."""

HEADER = (
    "model",
    "asked through",
    "clients",
    "p50 ms",
    "p99 ms",
    "requests/s",
    "to in process",
    "mean batch",
    "wrong",
    "failed",
    "largest error",
)
TEXT = (0, 1)  # the columns that are no numbers


def table(rows):
    """Returns the Markdown table of the rows; `-` stands for what there is not."""
    lines = [_cells(row, _in_process(rows, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(HEADER, *lines, strict=True)]

    def line(cells):
        padded = (
            cell.ljust(width) if index in TEXT else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )
        return f"| {' | '.join(padded)} |"

    rule = (
        "-" * (width + 2) if index in TEXT else "-" * (width + 1) + ":"
        for index, width in enumerate(widths)
    )
    return "\n".join([line(HEADER), f"|{'|'.join(rule)}|", *map(line, lines)])


def _in_process(rows, row):
    """Returns the row of direct calls of the same model by as many threads."""
    return next(
        other
        for other in rows
        if other["how"] == "in process"
        and (other["model"], other["clients"]) == (row["model"], row["clients"])
    )


def _cells(row, direct):
    def number(key, form):
        return "-" if row.get(key) is None else format(row[key], form)

    return (
        row["model"],
        row["how"],
        str(row["clients"]),
        number("p50_ms", ".1f"),
        number("p99_ms", ".1f"),
        number("per_second", ".0f"),
        format(row["per_second"] / direct["per_second"], ".2f"),
        number("mean_batch", ".1f"),
        number("wrong", "d"),
        number("failed", "d"),
        number("largest_error", ".1e"),
    )


def markdown(record):
    """Returns the page of a run.

    Args:
        record: what `serving.json` holds.
    """
    source, machine = record["source"], record["machine"]
    commit = source["commit"] or "unknown, not a git checkout"
    dirty = ", with uncommitted changes" if source["dirty"] else ""
    versions = ", ".join(f"{name} {version}" for name, version in record["versions"].items())
    lines = [
        "# Serving",
        "",
        f"Made by `{record['command']}`, commit {commit}{dirty}, on {machine['cores']} cores of "
        f"{machine['cpu']}, load before {record['load_before']:.1f}; on the CPU alone. Server: "
        f"{versions}.",
        "",
        *(f"- {line}" for line in record["definitions"]),
    ]
    if record["load_before"] > machine["cores"] / 4:
        lines.append("- The machine did other work too: all of these times are too long.")
    for row in record["rows"]:
        if row.get("batches"):
            found = ", ".join(f"{number} of {rows}" for rows, number in row["batches"].items())
            lines.append(f"- Batches, {row['model']} through {row['how']}, by rows: {found}.")
    return "\n".join([*lines, "", table(record["rows"])]) + "\n"
