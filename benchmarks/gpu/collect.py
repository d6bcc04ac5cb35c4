"""All measurements of `benchmarks.gpu`, each in a process of its own, and what is made of them."""

import dataclasses
import importlib.util
import itertools

from tqdm import tqdm

from benchmarks.harness.process import ChildError, run
from benchmarks.training.batch import num_slots
from keras_tupe import SIZES
from keras_tupe.trainer import step_flops
from training.machine.kind import known_peak

_NEEDS = {"jax": ("jax",), "tensorflow": ("tensorflow",), "transformers": ("torch", "transformers")}
_ONLY = "absolute"  # that transformers' BERT has as well


def collect(settings):
    """Measures everything that the settings ask for.

    Args:
        settings: a `Settings`.

    Returns:
        A dictionary: `rows`; `product_flops`, by precision, per second; `device`, `peak_flops` in
        bfloat16 or `None`, `versions` by system; `systems` that were run; `skipped` and `problems`,
        a sentence for each system that is not here, and for each measurement that failed.
    """
    found = {"rows": [], "product_flops": {}, "problems": [], "device": None, "versions": {}}
    found["skipped"] = list(filter(None, map(missing, settings.systems)))
    found["systems"] = [name for name in settings.systems if not missing(name)]
    shapes = itertools.product(settings.sizes, settings.precisions, settings.lengths)
    cases = [
        (system, *shape, position)
        for shape in shapes
        for system in found["systems"]
        for position in ([_ONLY] if system == "transformers" else settings.positions)
    ]
    for sentence in found["skipped"]:
        print(sentence)
    with tqdm(total=len(settings.precisions) + len(cases), unit="process", disable=None) as bar:

        def attempt(what, module, job, system):
            bar.set_description(what)
            backend = {} if system == "transformers" else {"KERAS_BACKEND": system}
            try:
                return run(module, job, bar.update, environment=backend)
            except ChildError as error:
                found["problems"].append(f"{what}: {error}")
                bar.update()
                return None

        backend = next((name for name in found["systems"] if name != "transformers"), None)
        for precision in settings.precisions if backend else ():
            job = {"precision": precision, "width": settings.product_width}
            name = f"product in {precision}"
            found["product_flops"][precision] = attempt(
                name, "benchmarks.gpu.product", job, backend
            )
        for system, size, precision, length, position in cases:
            facts = {"size": size, "precision": precision, "length": length, "position": position}
            job, kind = (
                _job(settings, **facts),
                "torch_case" if system == "transformers" else "case",
            )
            what = ", ".join(str(value) for value in (system, *facts.values()))
            result = attempt(what, f"benchmarks.gpu.{kind}", job, system)
            if result is not None:
                found["device"] = result.pop("device")
                found["versions"][system] = result.pop("versions")
                facts |= {"system": system, "batch_size": job["batch_size"]}
                found["rows"].append({**facts, **result})
    peak = settings.peak_flops or known_peak(found["device"] or "", "bfloat16", uses_tf32=True)
    found["peak_flops"] = peak
    for row in found["rows"]:
        add_shares(row, settings, found)
    return found


def missing(system):
    """Returns a sentence if a system is not installed here, else `None`."""
    absent = [name for name in _NEEDS[system] if importlib.util.find_spec(name) is None]
    return (
        f"Skipped: {system}, since {' and '.join(absent)} cannot be imported." if absent else None
    )


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
    product = found["product_flops"].get(row["precision"])
    is_baseline = first["position"] == settings.positions[0]
    is_baseline = is_baseline and first["system"] == found["systems"][0]
    row["ratio"] = row["ms"] / first["ms"] if is_baseline else None
    row["tokens_per_second"] = 1e3 * row["batch_size"] * row["length"] / row["ms"]
    row["tflops"] = per_second / 1e12
    row["utilisation"] = (
        per_second / found["peak_flops"] if found["peak_flops"] and is_half else None
    )
    row["product_share"] = per_second / product if product else None
