"""All measurements of `benchmarks.gpu`, each in a process of its own, and their page."""

import dataclasses
import itertools

from tqdm import tqdm

from benchmarks import _child, _training_batch
from benchmarks._report import _facts
from keras_tupe import SIZES
from keras_tupe.trainer import step_flops
from training.machine.peak import known_peak

COLUMNS = (
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


def collect(settings):
    """Measures everything that the settings ask for.

    Args:
        settings: a `Settings` of `_training_gpu_settings`.

    Returns:
        A dictionary: `rows`; `product_flops`, by precision, per second; `device`, `peak_flops` in
        bfloat16 or `None`, `versions`; `problems`, a sentence for each measurement that failed.
    """
    cases = list(
        itertools.product(settings.sizes, settings.precisions, settings.lengths, settings.positions)
    )
    found = {"rows": [], "product_flops": {}, "problems": [], "device": None, "versions": None}
    with tqdm(total=len(settings.precisions) + len(cases), unit="process", disable=None) as bar:

        def attempt(what, module, job):
            bar.set_description(what)
            try:
                return _child.run(module, job, bar.update)
            except _child.ChildError as error:
                found["problems"].append(f"{what}: {error}")
                bar.update()
                return None

        for precision in settings.precisions:
            job = {"precision": precision, "width": settings.product_width}
            name = f"product in {precision}"
            found["product_flops"][precision] = attempt(
                name, "benchmarks._training_gpu_product", job
            )
        for size, precision, length, position in cases:
            facts = {"size": size, "precision": precision, "length": length, "position": position}
            job = _job(settings, **facts)
            what = ", ".join(str(value) for value in facts.values())
            result = attempt(what, "benchmarks._training_gpu_case", job)
            if result is not None:
                found["device"] = result.pop("device")
                found["versions"] = result.pop("versions")
                found["rows"].append({**facts, "batch_size": job["batch_size"], **result})
    peak = settings.peak_flops or known_peak(found["device"] or "", "bfloat16", uses_tf32=True)
    found["peak_flops"] = peak
    for row in found["rows"]:
        _add_shares(row, settings, found)
    return found


def _job(settings, size, precision, length, position):
    return {
        "position": position,
        "sizes": dataclasses.asdict(SIZES[size]),
        "vocabulary_size": settings.vocabulary_size,
        "batch_size": max(1, settings.tokens // length),
        "length": length,
        "precision": precision,
        "steps": settings.steps,
    }


def _add_shares(row, settings, found):
    sizes = {k: v for k, v in dataclasses.asdict(SIZES[row["size"]]).items() if k != "num_heads"}
    flops = step_flops(
        **sizes,
        vocabulary_size=settings.vocabulary_size,
        batch_size=row["batch_size"],
        length=row["length"],
        num_slots=_training_batch.num_slots(row["length"]),
    )
    per_second = 1e3 * flops / row["ms"]
    first = next(
        other
        for other in found["rows"]
        if all(other[key] == row[key] for key in ("size", "precision", "length"))
    )
    is_half = row["precision"] == "bfloat16"
    product = found["product_flops"][row["precision"]]
    row["ratio"] = row["ms"] / first["ms"] if first["position"] == settings.positions[0] else None
    row["tokens_per_second"] = 1e3 * row["batch_size"] * row["length"] / row["ms"]
    row["tflops"] = per_second / 1e12
    row["utilisation"] = (
        per_second / found["peak_flops"] if found["peak_flops"] and is_half else None
    )
    row["product_share"] = per_second / product if product else None


def markdown(record):
    """Returns the page of a run.

    Args:
        record: what `gpu.json` holds.
    """
    source = record["source"]
    commit = source["commit"] or "unknown, not a git checkout"
    dirty = ", with uncommitted changes" if source["dirty"] else ""
    peak = record["peak_flops"]
    lines = [
        "# Training on an accelerator",
        "",
        f"Made by `{record['command']}`, commit {commit}{dirty}, on {record['device']}; "
        f"{record['machine']['cpu']}; {_facts({'versions': record['versions'] or {}})}.",
        "",
        f"- Median of {record['settings']['steps']} steps of `Trainer.fit`, after "
        f"{_training_batch.WARM_UP_STEPS} that are not counted; dropout "
        f"{_training_batch.DROPOUT}; always the same batch.",
        "- Utilisation: model FLOPs per second by the peak in bfloat16, "
        + (f"{peak / 1e12:,.0f} TFLOP/s." if peak else "which is not known of this device."),
        *(
            f"- Largest matrix product in {precision}: {flops / 1e12:,.2f} TFLOP/s."
            for precision, flops in record["product_flops"].items()
            if flops
        ),
        "- Peak MiB: on the device, weights and optimizer included; `-` where JAX does not tell.",
        *(f"- Failed: {problem}." for problem in record["problems"]),
        "",
        f"| {' | '.join(name for name, _, _ in COLUMNS)} |",
        f"|{'|'.join('---' if form == 's' else '--:' for _, _, form in COLUMNS)}|",
    ]
    for row in record["rows"]:
        cells = ("-" if row[key] is None else format(row[key], form) for _, key, form in COLUMNS)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"
