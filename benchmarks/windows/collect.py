"""All measurements of a run: at each length one process per system, in interleaved rounds."""

import math
import statistics
import sys

from tqdm import tqdm

from benchmarks.harness.environments import PEER, folder_of
from benchmarks.harness.process import ChildError, Worker
from benchmarks.harness.rounds import ratios, turns
from benchmarks.windows.settings import PEER_LABEL, SIZES, VOCABULARY_SIZE


def collect(settings):
    """Measures everything that the settings ask for.

    Args:
        settings: a `Settings`.

    Returns:
        A dictionary: `rows`; `slopes` of time and memory over the length; `environments`, what each
        system says about itself; `problems`, a sentence for each that failed.
    """
    found = {"rows": [], "slopes": [], "environments": {}, "problems": []}
    python = None
    if settings.peer:
        python, reason = PEER.ensure(folder_of(settings.peer_environment))
        if reason:
            found["problems"].append(f"{PEER_LABEL}: {reason}")
    labels = [*settings.positions, *([PEER_LABEL] if python else [])]
    total = len(settings.lengths) * len(labels) * (settings.rounds + 1)
    with tqdm(total=total, unit="step", disable=None) as bar:
        for length in sorted(settings.lengths):
            bar.set_description(f"n = {length}")
            found["rows"] += _rows(found, settings, labels, length, python, bar.update)
    found["slopes"] = slopes(found["rows"])
    return found


def _rows(found, settings, labels, length, python, tick):
    workers = {}
    try:
        for label in labels:
            job = {
                "position": label,
                "sizes": SIZES,
                "vocabulary_size": VOCABULARY_SIZE,
                "length": length,
                "window": settings.window,
                "remat": settings.remat,
            }
            is_peer = label == PEER_LABEL
            module = "benchmarks.windows.longformer" if is_peer else "benchmarks.windows.ours"
            try:
                workers[label] = Worker(module, job, python if is_peer else sys.executable)
                found["environments"][label] = workers[label].facts
            except ChildError as error:
                found["problems"].append(f"{label}, n = {length}: {error}")
        steps = {label: [] for label in workers}
        for index, label in turns(workers, settings.rounds):
            answer = workers[label].ask("step")
            if index > 0:
                steps[label].append(answer)
            tick()
        memory = {label: worker.ask("memory")["mib"] for label, worker in workers.items()}
    finally:
        for worker in workers.values():
            worker.close()
    return [
        {
            "label": label,
            "length": length,
            "ms": 1e3 * statistics.median(one["wall"] for one in own),
            "cpu_ms": 1e3 * statistics.median(one["cpu"] for one in own),
            "peak_memory_mib": memory[label],
            **_to_peer(own, memory[label], steps.get(PEER_LABEL), memory.get(PEER_LABEL)),
        }
        for label, own in steps.items()
    ]


def _to_peer(own, memory, peer, peer_memory):
    """Returns medians of the ratios in the same rounds, `None` if there is no peer."""
    if not peer:
        return dict.fromkeys(("ratio", "cpu_ratio", "memory_ratio"))
    found = {"memory_ratio": memory / peer_memory}
    for part, name in (("wall", "ratio"), ("cpu", "cpu_ratio")):
        pairs = ([one[part] for one in of] for of in (own, peer))
        found[name] = statistics.median(ratios(*pairs))
    return found


def slopes(rows):
    """Returns how time and memory grow: slopes of their logarithms over that of the length.

    Args:
        rows: with `label`, `length`, `cpu_ms` and `peak_memory_mib`.

    Returns:
        A list of dictionaries: `label`, `shortest`, `longest`, and the slopes `time` and `memory`,
        by least squares; 1 is proportional to the length, 2 to its square.
    """
    found = []
    for label in dict.fromkeys(row["label"] for row in rows):
        own = [row for row in rows if row["label"] == label]
        lengths = [math.log(row["length"]) for row in own]
        if len(set(lengths)) < 2:
            continue
        one = {"label": label, "shortest": own[0]["length"], "longest": own[-1]["length"]}
        for name, key in (("time", "cpu_ms"), ("memory", "peak_memory_mib")):
            logs = [math.log(max(row[key], 1e-3)) for row in own]
            one[name] = statistics.linear_regression(lengths, logs).slope
        found.append(one)
    return found
