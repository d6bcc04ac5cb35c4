"""The page of a run of `benchmarks.attention`."""

from benchmarks.attention.settings import BASELINE, INTERLEAVED
from benchmarks.harness import report
from benchmarks.harness.memory import SMALL


def _quartiles(row):
    found = row["ratio_quartiles"]
    return None if found is None else "{:.2f} - {:.2f}".format(*found)


COLUMNS = (
    ("heads", "heads", "d"),
    ("n", "length", "d"),
    ("batch", "batch_size", "d"),
    ("method", "label", "s"),
    ("ms", "ms", ".1f"),
    ("CPU ms", "cpu_ms", ".1f"),
    ("ratio", "ratio", ".2f"),
    ("quartiles", _quartiles, "s"),
    ("CPU", "cpu_ratio", ".2f"),
    ("core ms", "core_ms", ".1f"),
    ("core ratio", "core_ratio", ".2f"),
    ("core, CPU", "core_cpu_ratio", ".2f"),
    ("peak MiB", "peak_memory_mib", ",.0f"),
    ("not measured", "reason", "s"),
)
SLOPE_COLUMNS = (
    ("heads", "heads", "d"),
    ("method", "label", "s"),
    ("n", "shortest", ",d"),
    ("MiB", "shortest_mib", ",.0f"),
    ("n", "longest", ",d"),
    ("MiB", "longest_mib", ",.0f"),
    ("slope", "slope", ".2f"),
)


def markdown(record):
    """Returns the page of a run.

    Args:
        record: what `attention.json` holds.
    """
    lines = [
        "# Attention",
        "",
        f"{report.made_by(record)}, on {report.cores_of(record)}; "
        f"GPU: {record['machine']['gpu'] or 'none'}.",
    ]
    if record["environment"]:
        lines.append(f"Environment: {report.facts_text(record['environment'])}.")
    lines += ["", *(f"- {line}" for line in record["definitions"])]
    lines += [f"- Failed: {problem}." for problem in record["problems"]]
    lines += ["", "## Time and memory", "", report.table_of(COLUMNS, record["rows"])]
    if record["slopes"]:
        lines += ["", "## Growth of memory with the length", ""]
        lines.append(report.table_of(SLOPE_COLUMNS, record["slopes"]))
    return "\n".join(lines) + "\n"


def definitions(settings):
    """Returns what the numbers are, one sentence each."""
    return [
        "One attention layer and what makes its position bias, called as an encoder calls them: "
        "four projections, scores, padding mask (of ones), softmax, dropout 0.1, product with the "
        f"values; forward and backward pass, gradients of all weights and of the hidden states. "
        f"Heads of {settings.head_dim}, {settings.precision}.",
        f"Ratio: median over the rounds of the time by that of `{BASELINE}` in the same round. "
        "CPU: the same of the processor time of all threads. Core: without what the four "
        "projections alone took in the same round.",
        f"Up to {INTERLEAVED:,} tokens: {settings.rounds} rounds with one step of every method in "
        "turn, every other round in reverse order, after two steps of each that are not counted. "
        "Beyond: the last step of the process that measured the memory, so one number.",
        "Peak MiB: growth of a process's largest memory, each layer in a process of its own, from "
        f"after a step with a batch of {SMALL[0]} x {SMALL[1]} tokens, so that weights, inputs and "
        "libraries are not counted. A process that would grow beyond "
        f"{settings.limit_mib:,} MiB, or beyond what the machine has, is ended.",
        "Slope: of the logarithm of that growth over the logarithm of the length, from "
        f"{INTERLEAVED:,} tokens on; 1 is proportional to the length, 2 to its square.",
    ]
