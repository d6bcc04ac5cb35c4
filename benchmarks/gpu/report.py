"""The page of a run of `benchmarks.gpu`."""

from benchmarks.harness import report
from benchmarks.training import batch as batches

COLUMNS = (
    ("system", "system", "s"),
    ("size", "size", "s"),
    ("precision", "precision", "s"),
    ("n", "length", "d"),
    ("batch", "batch_size", "d"),
    ("position", "position", "s"),
    ("ms", "ms", ".1f"),
    ("to first", "ratio", ".3f"),
    ("tokens/s", "tokens_per_second", ",.0f"),
    ("TFLOP/s", "tflops", ".2f"),
    ("utilisation", "utilisation", ".1%"),
    ("of product", "product_share", ".1%"),
    ("peak MiB", "peak_memory_mib", ",.0f"),
)


def markdown(record):
    """Returns the page of a run.

    Args:
        record: what `gpu.json` holds.
    """
    peak = record["peak_flops"]
    versions = [report.facts_text({"versions": found}) for found in record["versions"].values()]
    lines = [
        "# Training on an accelerator",
        "",
        f"{report.made_by(record)}, on {record['device']}; {record['machine']['cpu']}; "
        f"{'; '.join(versions)}.",
        "",
        "- `jax` and `tensorflow` (`MirroredStrategy`, XLA) are `Trainer.fit`; `transformers` is "
        "its BERT on torch, by `torch.compile` on GPUs.",
        f"- Median of {record['settings']['steps']} steps, after "
        f"{batches.WARM_UP_STEPS} that are not counted; dropout "
        f"{batches.DROPOUT}; always the same batch.",
        "- Utilisation: model FLOPs per second by the peak in bfloat16, "
        + (f"{peak / 1e12:,.0f} TFLOP/s." if peak else "which is not known of this device."),
        *(
            f"- Largest matrix product in {precision}: {flops / 1e12:,.2f} TFLOP/s."
            for precision, flops in record["product_flops"].items()
            if flops
        ),
        "- Peak MiB: on the device, weights and optimizer included; `-` where that is not told.",
        *(f"- {sentence}" for sentence in record["skipped"]),
        *(f"- Failed: {problem}." for problem in record["problems"]),
        "",
        report.table_of(COLUMNS, record["rows"]),
    ]
    return "\n".join(lines) + "\n"
