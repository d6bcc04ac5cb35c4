"""The page of a run of `benchmarks.serving`."""

from benchmarks.harness import report
from benchmarks.serving.answers import TOLERANCE

COLUMNS = (
    ("model", "model", "s"),
    ("asked through", "how", "s"),
    ("clients", "clients", "d"),
    ("p50 ms", "p50_ms", ".1f"),
    ("p99 ms", "p99_ms", ".1f"),
    ("requests/s", "per_second", ".0f"),
    ("to in process", "to_direct", ".2f"),
    ("mean batch", "mean_batch", ".1f"),
    ("wrong", "wrong", "d"),
    ("failed", "failed", "d"),
    ("largest error", "largest_error", ".1e"),
)


def table(rows):
    """Returns the Markdown table of the rows, compared with direct calls by as many threads."""
    direct = {
        (row["model"], row["clients"]): row["per_second"]
        for row in rows
        if row["how"] == "in process"
    }
    return report.table_of(
        COLUMNS,
        [
            {**row, "to_direct": row["per_second"] / direct[row["model"], row["clients"]]}
            for row in rows
        ],
    )


def markdown(record):
    """Returns the page of a run.

    Args:
        record: what `serving.json` holds.
    """
    versions = ", ".join(f"{name} {version}" for name, version in record["versions"].items())
    lines = [
        "# Serving",
        "",
        f"{report.made_by(record)}, on {report.cores_of(record)}, "
        f"load before {record['load_before']:.1f}; on the CPU alone. Server: {versions}.",
        "",
        *(f"- {line}" for line in record["definitions"]),
    ]
    if record["load_before"] > record["machine"]["cores"] / 4:
        lines.append("- The machine did other work too: all of these times are too long.")
    for row in record["rows"]:
        if row.get("batches"):
            found = ", ".join(f"{number} of {rows}" for rows, number in row["batches"].items())
            lines.append(f"- Batches, {row['model']} through {row['how']}, by rows: {found}.")
    return "\n".join([*lines, "", table(record["rows"])]) + "\n"


def definitions(settings):
    """Returns what the numbers are, one sentence each."""
    batching = (
        f"joins up to {settings.batch_size} requests that come within {settings.wait_ms:g} ms"
        if settings.batch_size > 1
        else "does not join requests"
    )
    return [
        f"{settings.requests:,} requests of each model and protocol, every eighth with three rows, "
        f"the others with one; texts of 0 to 80 words, ids with 2 tokens or more and padding. "
        f"{settings.clients} clients, each with one connection, ask as fast as they can; they run "
        "on the same cores as the server.",
        f"The server {batching}. Mean batch: rows that were computed together.",
        "In process: the SavedModel's signature called from threads of one process, without "
        "batching. To in process: requests per second by those of as many threads.",
        "Wrong: largest absolute difference from the direct call above "
        f"{TOLERANCE:g}, in any output that was asked for. The warm-up of "
        f"{4 * settings.clients} requests is compared too, but not timed.",
    ]
