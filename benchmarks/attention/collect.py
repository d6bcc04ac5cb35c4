"""All measurements of a run: memory of each layer in a process of its own, times in rounds."""

import math
import os
import pathlib
import statistics
import sys

from tqdm import tqdm

from benchmarks.attention.layer import PROJECTIONS
from benchmarks.attention.settings import BASELINE, INTERLEAVED
from benchmarks.harness import process
from benchmarks.harness.memory import STEPS, available
from benchmarks.harness.rounds import quartiles, ratios
from training.command.report import duration

WORKER = "benchmarks.attention.worker"
LONG_STEPS = 2  # of memory, beyond `INTERLEAVED` tokens; the last is timed
_ROOM = 0.8  # of the machine's free memory that a layer may take
_NANOSECONDS, _START, _TRACE = 14, 8, 1.5  # per logit and step; seconds of a process, of a case


def collect(settings):
    """Measures everything that the settings ask for.

    Args:
        settings: a `Settings`.

    Returns:
        A dictionary: `rows`, in the order of the table; `slopes`, of memory over the length;
        `environment`, the versions of what computed; `problems`, a sentence for each measurement
        that failed.
    """
    variants = settings.variants()
    cases = [{"label": PROJECTIONS, "position": PROJECTIONS, "options": {}}]
    for one in variants:
        case = {"label": one.label, "position": one.position, "options": one.options}
        cases.insert(-1, case)  # the baseline stays the first
    files = [str(pathlib.Path(one.file).resolve()) for one in variants if one.file]
    found = {"rows": [], "slopes": [], "environment": None, "problems": []}
    places = [(heads, length) for heads in settings.heads for length in sorted(settings.lengths)]
    total = sum(_seconds(settings, len(cases), *place) for place in places)
    print(f"attention: about {duration(total)} if nothing else runs.", file=sys.stderr)
    expected = {}  # (heads, label) -> seconds of a step by its length
    with tqdm(total=len(places) * len(cases), unit="layer", disable=None) as bar:
        for heads, length in places:
            bar.set_description(f"{heads} heads, n = {length}")
            job = _job(settings, heads, length, files)
            rows = [_memory_row(found, settings, job, case, expected, bar.update) for case in cases]
            if length <= INTERLEAVED:
                _add_rounds(found, job, rows, settings.rounds)
            else:
                _add_ratios(rows)
            found["rows"] += rows
    found["slopes"] = slopes(found["rows"])
    return found


def _job(settings, heads, length, files):
    return {
        "heads": heads,
        "head_dim": settings.head_dim,
        "length": length,
        "batch_size": max(1, settings.tokens // length),
        "precision": settings.precision,
        "xla": settings.xla,
        "files": files,
        "steps": STEPS if length <= INTERLEAVED else LONG_STEPS,
    }


def _seconds(settings, count, heads, length):
    """Returns about how long so many cases take."""
    job = _job(settings, heads, length, [])
    cores = len(os.sched_getaffinity(0))
    step = 2e-9 / cores * _NANOSECONDS * job["batch_size"] * heads * length**2 + 0.01
    steps, once = job["steps"], _START + _TRACE
    if length <= INTERLEAVED:
        steps, once = steps + settings.rounds + 2, once + _TRACE
    return count * (once + steps * min(step, settings.step_seconds))


def _memory_row(found, settings, job, case, expected, tick):
    """Returns the row of a case with its memory, or with the `reason` why there is none."""
    names = ("heads", "length", "batch_size")
    row = {**{name: job[name] for name in names}, **case, "peak_memory_mib": None, "reason": None}
    work = job["batch_size"] * job["length"] ** 2
    key = (job["heads"], case["label"])
    seconds = expected.get(key, 0) * work
    limit = int(min(settings.limit_mib, _ROOM * available() / 2**20))
    tick()
    if seconds == math.inf:
        row["reason"] = "did not fit at a shorter length"
        return row
    if seconds > settings.step_seconds:
        row["reason"] = f"would take about {seconds:,.0f} s a step"
        return row
    where = f"{case['label']}, {job['heads']} heads, n = {job['length']}"
    try:
        result = process.run(
            WORKER, {**job, "cases": [case], "memory": True, "limit_mib": limit}, lambda: None
        )
    except process.ChildError as error:
        found["problems"].append(f"{where}: {error}")
        row["reason"] = "failed"
        return row
    found["environment"] = {"versions": result["versions"]}
    if "above_mib" in result:
        row["reason"] = f"does not fit into {result['above_mib']:,} MiB"
        expected[key] = math.inf
    else:
        row |= {"peak_memory_mib": result["mib"], "seconds": [_only(result)]}
        expected[key] = result["wall"] / work
    return row


def _only(result):
    return {"wall": result["wall"], "cpu": result["cpu"]}


def _add_rounds(found, job, rows, rounds):
    """Times what fits, in interleaved rounds in one process."""
    names = ("label", "position", "options")
    cases = [
        {name: row[name] for name in names} for row in rows if row["peak_memory_mib"] is not None
    ]
    try:
        result = process.run(
            WORKER, {**job, "cases": cases, "memory": False, "rounds": rounds}, lambda: None
        )
    except process.ChildError as error:
        found["problems"].append(f"times, {job['heads']} heads, n = {job['length']}: {error}")
        result = {"times": {}}
    for row in rows:
        row.pop("seconds", None)
        if row["label"] in result["times"]:
            row["seconds"] = result["times"][row["label"]]
    _add_ratios(rows)


def _add_ratios(rows):
    """Adds times, and ratios to the baseline's, to the rows of one place that have `seconds`.

    Of the core: what remains of both without what the projections took in the same round.
    """
    seconds = {row["label"]: row.pop("seconds", None) for row in rows}
    for row in rows:
        own = seconds[row["label"]]
        base, dense = seconds.get(BASELINE), seconds.get(PROJECTIONS)
        for part, ms, beginning in (("wall", "ms", ""), ("cpu", "cpu_ms", "cpu_")):
            mine, bases, denses = (one and [s[part] for s in one] for one in (own, base, dense))
            row[ms] = 1e3 * statistics.median(mine) if mine else None
            to_base = ratios(mine, bases) if mine and bases else None
            row[f"{beginning}ratio"] = statistics.median(to_base) if to_base else None
            if part == "wall":
                row["ratio_quartiles"] = quartiles(to_base) if to_base else None
            is_core = mine and bases and denses and row["label"] != PROJECTIONS
            core = is_core and [a - b for a, b in zip(mine, denses, strict=True)]
            row[f"core_{ms}"] = 1e3 * statistics.median(core) if core else None
            base_core = is_core and [a - b for a, b in zip(bases, denses, strict=True)]
            row[f"core_{beginning}ratio"] = (
                statistics.median(ratios(core, base_core)) if core else None
            )


def slopes(rows):
    """Returns how memory grows with the length: slopes of its logarithm over the length's.

    Args:
        rows: with `heads`, `label`, `length` and `peak_memory_mib`. Those of at least
            `INTERLEAVED` tokens count, whose batch is one sequence by default.

    Returns:
        A list of dictionaries: `heads`, `label`, `shortest` and `longest` that were measured,
        their memory as `shortest_mib` and `longest_mib`, and `slope`, by least squares; 1 is
        proportional to the length, 2 to its square. Only of what has two lengths.
    """
    points = {}
    for row in rows:
        if row["length"] >= INTERLEAVED and row["peak_memory_mib"] is not None:
            one = (row["length"], max(row["peak_memory_mib"], 1e-3))
            points.setdefault((row["heads"], row["label"]), []).append(one)
    found = []
    for (heads, label), measured in points.items():
        if len(measured) > 1:
            pairs = [[math.log(number) for number in one] for one in zip(*measured, strict=True)]
            (shortest, least), (longest, most) = min(measured), max(measured)
            found.append(
                {
                    "heads": heads,
                    "label": label,
                    "shortest": shortest,
                    "shortest_mib": least,
                    "longest": longest,
                    "longest_mib": most,
                    "slope": statistics.linear_regression(*pairs).slope,
                }
            )
    return found
