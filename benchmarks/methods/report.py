"""The page of a run of `benchmarks.methods`."""

from benchmarks.harness import report
from benchmarks.harness.memory import SMALL, STEPS


def _name(row):
    return row["label"] if row["by"] == "keras_tupe" else f"{row['by']}: {row['label']}"


COLUMNS = (
    ("n", "length", "d"),
    ("batch", "batch_size", "d"),
    ("method", _name, "s"),
    ("train", "train_ratio", ".2f"),
    ("inference", "inference_ratio", ".2f"),
    ("train, CPU", "train_cpu_ratio", ".2f"),
    ("inference, CPU", "inference_cpu_ratio", ".2f"),
    ("train ms", "train_ms", ".1f"),
    ("inference ms", "inference_ms", ".1f"),
    ("peak MiB", "peak_memory_mib", ".0f"),
    ("parameters", "parameters", ","),
)


def table(rows):
    """Returns the Markdown table of the rows."""
    return report.table_of(COLUMNS, rows)


def markdown(record):
    """Returns the page of a run.

    Args:
        record: what `methods.json` holds.
    """
    lines = [
        "# Cost of the position methods",
        "",
        f"{report.made_by(record)}, on {report.cores_of(record)}; "
        f"GPU: {record['machine']['gpu'] or 'none'}.",
    ]
    for name in ("environment", "peer_environment"):
        if record[name]:
            title = name.capitalize().replace("_", " ")
            lines.append(f"{title}: {report.facts_text(record[name])}.")
    lines += ["", *(f"- {line}" for line in record["definitions"])]
    if record["peer_left_out"]:
        lines.append(f"- Rows of transformers are left out: {record['peer_left_out']}.")
    lines += [f"- Failed: {problem}." for problem in record["problems"]]
    return "\n".join([*lines, "", table(record["rows"])]) + "\n"


def definitions(settings):
    """Returns what the numbers are, one sentence each."""
    memory = (
        f"Peak memory: growth of a process's largest memory in {STEPS} train steps, from "
        f"after a step with a batch of {SMALL[0]} x {SMALL[1]} tokens, so that "
        "weights, optimizer state and libraries are not counted."
    )
    times = [
        "Ratios: median over the rounds of the time by that of `absolute` in the same round; of "
        "transformers' rows, by its own `absolute`. CPU: the same of the processor time of all "
        "threads, which tells less of what else the machine did.",
        f"Each of the {settings.rounds} rounds does one train step (AdamW, mse) and one inference "
        "of every method in turn, every other round in reverse order; one round before is not "
        "counted.",
    ]
    return [
        *(times if settings.times else ["Times were not measured: --no-times was given."]),
        memory if settings.memory else "Peak memory was not measured: --no-memory was given.",
        "Parameters: of the timed encoder, without a pooled output.",
    ]
