"""All measurements of `benchmarks.gpu`, each in a process of its own, and what is made of them."""

import dataclasses
import itertools

from tqdm import tqdm

from benchmarks.harness.process import ChildError, run
from benchmarks.training.batch import num_slots
from keras_tupe import SIZES
from keras_tupe.trainer import step_flops
from training.machine.kind import known_peak


def collect(settings):
    """Measures everything that the settings ask for.

    Args:
        settings: a `Settings`.

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
                return run(module, job, bar.update)
            except ChildError as error:
                found["problems"].append(f"{what}: {error}")
                bar.update()
                return None

        for precision in settings.precisions:
            job = {"precision": precision, "width": settings.product_width}
            name = f"product in {precision}"
            found["product_flops"][precision] = attempt(name, "benchmarks.gpu.product", job)
        for size, precision, length, position in cases:
            facts = {"size": size, "precision": precision, "length": length, "position": position}
            job = _job(settings, **facts)
            what = ", ".join(str(value) for value in facts.values())
            result = attempt(what, "benchmarks.gpu.case", job)
            if result is not None:
                found["device"] = result.pop("device")
                found["versions"] = result.pop("versions")
                found["rows"].append({**facts, "batch_size": job["batch_size"], **result})
    peak = settings.peak_flops or known_peak(found["device"] or "", "bfloat16", uses_tf32=True)
    found["peak_flops"] = peak
    for row in found["rows"]:
        add_shares(row, settings, found)
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


def add_shares(row, settings, found):
    """Adds ratios, speeds and shares of the peaks to a row, once all rows are there."""
    sizes = {k: v for k, v in dataclasses.asdict(SIZES[row["size"]]).items() if k != "num_heads"}
    flops = step_flops(
        **sizes,
        vocabulary_size=settings.vocabulary_size,
        batch_size=row["batch_size"],
        length=row["length"],
        num_slots=num_slots(row["length"]),
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
