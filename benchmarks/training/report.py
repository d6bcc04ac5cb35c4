"""The page of a run of `benchmarks.training`."""

from benchmarks.harness import report
from benchmarks.training import batch as batches


def _quartiles(row):
    found = row["ratio_quartiles"]
    return None if found is None else "{:.2f} - {:.2f}".format(*found)


COLUMNS = (
    ("size", "size", "s"),
    ("precision", "precision", "s"),
    ("n", "length", "d"),
    ("batch", "batch_size", "d"),
    ("system", "label", "s"),
    ("ms", "ms", ".1f"),
    ("to peer", "ratio", ".2f"),
    ("quartiles", _quartiles, "s"),
    ("to peer, CPU", "cpu_ratio", ".2f"),
    ("to first", "baseline_ratio", ".2f"),
    ("to first, CPU", "baseline_cpu_ratio", ".2f"),
    ("tokens/s", "tokens_per_second", ",.0f"),
    ("peak MiB", "peak_memory_mib", ".0f"),
    ("of peak", "peak_share", ".1%"),
)


def table(rows):
    """Returns the Markdown table of the rows."""
    return report.table_of(COLUMNS, rows)


def markdown(record):
    """Returns the page of a run.

    Args:
        record: what `training.json` holds.
    """
    lines = [
        "# Speed of training",
        "",
        f"{report.made_by(record)}, on {report.cores_of(record)}; "
        f"GPU: {record['machine']['gpu'] or 'none'}.",
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
    for name, facts in record["facts"].items():
        if facts:
            lines.append(f"- {name}: {report.facts_text(facts)}.")
    if record["left_out"]:
        lines.append(f"- Rows of transformers are left out: {record['left_out']}.")
    lines += [f"- Failed: {problem}." for problem in record["problems"]]
    return "\n".join([*lines, "", table(record["rows"])]) + "\n"


def definitions(settings):
    """Returns what the numbers are, one sentence each."""
    return [
        "One train step: forward and backward pass, clipping by the global norm 1, AdamW; dropout "
        f"{batches.DROPOUT} everywhere, {batches.MASKED:.0%} of the tokens "
        "masked, logits at those alone. bfloat16 is `mixed_bfloat16` in Keras and "
        "`torch.autocast` in torch, with weights in float32.",
        "To peer: median over the rounds of the time by that of the faster peer in the same round "
        "(KerasHub; transformers with its head at the masked tokens alone, which it can do but "
        "does not by itself: the row with the head at all tokens is what it does). To first: by "
        f"`{settings.positions[0]}`. CPU: the same of the processor time of all threads, which "
        "tells less of what else the machine did.",
        f"{settings.rounds} rounds, each with one step of every system in turn, every other one in "
        f"reverse order, after {batches.WARM_UP_STEPS + 1} steps of each that are not "
        "counted.",
        "Peak MiB: growth of a process's largest memory from before its first step, when weights "
        "and optimizer state exist, to the end; compiled graphs are part of it.",
        "Of peak: model FLOPs per second, without recomputation, by those of the largest matrix "
        "product in the same run, the best of TensorFlow and torch.",
        "Waiting for rows: share of the wall time of the step spent in `next` of "
        f"`keras_tupe.data.tf_dataset`, training `{settings.positions[0]}` on rows in memory.",
    ]
