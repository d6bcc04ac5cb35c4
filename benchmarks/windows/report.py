"""The page of a run of `benchmarks.windows`."""

from benchmarks.harness import report
from benchmarks.windows import rows
from benchmarks.windows.settings import PEER_LABEL, SIZES, VOCABULARY_SIZE

COLUMNS = (
    ("n", "length", ",d"),
    ("system", "label", "s"),
    ("ms", "ms", ",.0f"),
    ("CPU ms", "cpu_ms", ",.0f"),
    ("to Longformer", "ratio", ".2f"),
    ("CPU", "cpu_ratio", ".2f"),
    ("peak MiB", "peak_memory_mib", ",.0f"),
    ("to Longformer", "memory_ratio", ".2f"),
)
SLOPE_COLUMNS = (
    ("system", "label", "s"),
    ("from n", "shortest", ",d"),
    ("to n", "longest", ",d"),
    ("slope of time", "time", ".2f"),
    ("slope of memory", "memory", ".2f"),
)


def markdown(record):
    """Returns the page of a run.

    Args:
        record: what `windows.json` holds.
    """
    lines = [
        "# Windows",
        "",
        f"{report.made_by(record)}, on {report.cores_of(record)}; "
        f"GPU: {record['machine']['gpu'] or 'none'}.",
        "",
        *(f"- {line}" for line in record["definitions"]),
        *(f"- {label}: {report.facts_text(x)}." for label, x in record["environments"].items()),
        *(f"- Failed: {problem}." for problem in record["problems"]),
        "",
        report.table_of(COLUMNS, record["rows"]),
    ]
    if record["slopes"]:
        lines += ["", "## Growth with the length", ""]
        lines.append(report.table_of(SLOPE_COLUMNS, record["slopes"]))
    return "\n".join(lines) + "\n"


def definitions(settings):
    """Returns what the numbers are, one sentence each."""
    again = ", blocks computed again in the backward pass" if settings.remat else ""
    return [
        f"A train step of an encoder of {SIZES['num_layers']} layers of width "
        f"{SIZES['hidden_dim']}, {VOCABULARY_SIZE:,} tokens known, on one text: forward and "
        f"backward pass, clipping, AdamW; dropout {rows.DROPOUT}, logits at the masked "
        f"{rows.MASKED:.0%} of the tokens alone; float32{again}.",
        f"A token sees {settings.window} tokens to each side, and the first token, which sees all. "
        f"{PEER_LABEL} is that of transformers, with `attention_window` "
        f"{2 * settings.window} and projections of its own for the global token, on torch.",
        f"{settings.rounds} rounds, one step of every system in turn, every other round in reverse "
        f"order, after {rows.WARM_UP_STEPS} steps and a turn of each that are not counted. Ratios "
        "are medians over the rounds.",
        "Peak MiB: growth of a process's largest memory over its steps, weights and the state of "
        "the optimizer not counted for this package, the state counted for torch.",
        "Slope: of the logarithm of processor time and of that growth over the logarithm of the "
        "length; 1 is proportional to the length, 2 to its square.",
    ]
