"""The page of a run of `benchmarks.training`."""

from benchmarks.harness import report
from benchmarks.training import batch as batches
from benchmarks.training.settings import STEPS_PER_TURN


def _quartiles(row):
    found = row["ratio_quartiles"]
    return None if found is None else "{:.2f} - {:.2f}".format(*found)


def _compiled(row):
    return {True: "yes", False: "no"}.get(row.get("compiles_passes"))


COLUMNS = (
    ("size", "size", "s"),
    ("precision", "precision", "s"),
    ("n", "length", "d"),
    ("batch", "batch_size", "d"),
    ("system", "label", "s"),
    ("XLA", _compiled, "s"),
    ("ms", "ms", ".1f"),
    ("CPU ms", "cpu_ms", ".1f"),
    ("to fastest", "ratio", ".2f"),
    ("quartiles", _quartiles, "s"),
    ("CPU", "cpu_ratio", ".2f"),
    ("to KerasHub", "hub_ratio", ".2f"),
    ("CPU", "hub_cpu_ratio", ".2f"),
    ("to first", "baseline_ratio", ".2f"),
    ("CPU", "baseline_cpu_ratio", ".2f"),
    ("tokens/s", "tokens_per_second", ",.0f"),
    ("of peak", "peak_share", ".1%"),
    ("peak MiB", "peak_memory_mib", ".0f"),
    ("to KerasHub", "hub_memory_ratio", ".2f"),
    ("to torch", "torch_memory_ratio", ".2f"),
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
    lines += [f"- Left out: {reason}." for reason in record["left_out"]]
    lines += [f"- Failed: {problem}." for problem in record["problems"]]
    return "\n".join([*lines, "", table(record["rows"])]) + "\n"


def definitions(settings):
    """Returns what the numbers are, one sentence each."""
    numbers = dict.fromkeys(settings.rounds_of(size) for size in settings.sizes)
    rounds = " or ".join(map(str, numbers))
    turns = ", ".join(f"{steps} of {size}" for size, steps in STEPS_PER_TURN.items())
    return [
        "One train step: forward and backward pass, clipping by the global norm 1, AdamW; dropout "
        f"{batches.DROPOUT} everywhere, {batches.MASKED:.0%} of the tokens "
        "masked, logits at those alone. bfloat16 is `mixed_bfloat16` in Keras and "
        "`torch.autocast` in torch, with weights in float32.",
        "To fastest: median over the rounds of the time by that of the fastest peer in the same "
        "round: KerasHub in `fit`, as it is, compiled by XLA (`jit_compile=True`) and on JAX; "
        "transformers with its head at the masked tokens alone, which it can do but does not by "
        "itself (the row with the head at all tokens is what it does), with SDPA, as it is and "
        "with `torch.compile`. To KerasHub: by KerasHub without XLA. To first: by "
        f"`{settings.positions[0]}`. CPU: the same of the processor time of all threads, by the "
        "least of the peers; it tells less of what else the machine did, and more of threads that "
        "wait by spinning, as torch's do.",
        f"{rounds} rounds, each with one turn of every system, every other one in reverse order, "
        f"after {batches.WARM_UP_STEPS} steps and a turn of each that are not counted. A turn is "
        f"one step ({turns}), of this package and KerasHub in `fit`, from when it calls its "
        "callbacks before a step until it has the loss.",
        "XLA: whether the trainer compiled forward and backward pass, which it may have measured; "
        "what that took is part of the warm-up and of the memory.",
        "Peak MiB: growth of a process's largest memory from before its first step, when weights "
        "and optimizer state exist, to the end; compiled graphs are part of it. To KerasHub, to "
        "torch: by that of KerasHub without XLA, of transformers without `torch.compile`.",
        "Of peak: model FLOPs per second, without recomputation, by those of the largest matrix "
        "product in the same run, the best of TensorFlow and torch.",
        "Waiting for rows: share of the wall time of the step spent in `next` of "
        f"`keras_tupe.data.tf_dataset`, training `{settings.positions[0]}` on rows in memory.",
    ]
