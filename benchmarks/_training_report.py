"""The page of a run, and its files."""

import json

from benchmarks._report import _facts

HEADER = (
    "size",
    "precision",
    "n",
    "batch",
    "system",
    "ms",
    "to peer",
    "quartiles",
    "to peer, CPU",
    "to first",
    "to first, CPU",
    "tokens/s",
    "peak MiB",
    "of peak",
)
TEXT = (0, 1, 4, 7)  # the columns that are no numbers


def table(rows):
    """Returns the Markdown table of the rows; `-` stands for what was not measured."""
    lines = [_cells(row) for row in rows]
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


def _cells(row):
    def number(key, form):
        return "-" if row[key] is None else format(row[key], form)

    quartiles = row["ratio_quartiles"]
    return (
        row["size"],
        row["precision"],
        str(row["length"]),
        str(row["batch_size"]),
        row["label"],
        number("ms", ".1f"),
        number("ratio", ".2f"),
        "-" if quartiles is None else "{:.2f} - {:.2f}".format(*quartiles),
        number("cpu_ratio", ".2f"),
        number("baseline_ratio", ".2f"),
        number("baseline_cpu_ratio", ".2f"),
        number("tokens_per_second", ",.0f"),
        number("peak_memory_mib", ".0f"),
        number("peak_share", ".1%"),
    )


def markdown(record):
    """Returns the page of a run.

    Args:
        record: what `training.json` holds.
    """
    source, machine = record["source"], record["machine"]
    commit = source["commit"] or "unknown, not a git checkout"
    dirty = ", with uncommitted changes" if source["dirty"] else ""
    lines = [
        "# Speed of training",
        "",
        f"Made by `{record['command']}`, commit {commit}{dirty}, on {machine['cores']} cores of "
        f"{machine['cpu']}; GPU: {machine['gpu'] or 'none'}.",
        "",
        *(f"- {line}" for line in record["definitions"]),
    ]
    for precision, peak in record["peak_flops"].items():
        lines.append(f"- Largest matrix product in {precision}: {peak / 1e9:,.0f} GFLOP/s.")
    for row in record["input_wait"]:
        lines.append(
            f"- Waiting for rows: {row['share']:.2%} of the step ({row['size']}, "
            f"{row['precision']}, n = {row['length']}, batch {row['batch_size']})."
        )
    lines += [f"- {name}: {_facts(facts)}." for name, facts in record["facts"].items() if facts]
    if record["left_out"]:
        lines.append(f"- Rows of transformers are left out: {record['left_out']}.")
    lines += [f"- Failed: {problem}." for problem in record["problems"]]
    return "\n".join([*lines, "", table(record["rows"])]) + "\n"


def json_text(record):
    """Returns a record as indented JSON."""
    return json.dumps(record, indent=2) + "\n"
