"""Interleaved calls of exported encoders."""

import statistics
import tempfile
import time

from tqdm import tqdm

from benchmarks.exports.cases import BASELINE, PEER, cases, inputs
from benchmarks.harness.rounds import median_interval, ratios, turns

UNCOUNTED = 2  # rounds before those that count


def collect(settings):
    """Measures all lengths and batches; returns a list of rows."""
    found = []
    encoders = len({BASELINE, *settings.positions}) + 1
    total = len(settings.lengths) * len(settings.batches) * (settings.rounds + UNCOUNTED) * encoders
    with tqdm(total=total, unit="call", disable=None) as bar:
        for length in settings.lengths:
            with tempfile.TemporaryDirectory() as folder:
                calls = cases(folder, settings.positions, settings.size, length)
                for batch in settings.batches:
                    bar.set_description(f"length {length}, batch {batch}")
                    rows = measure(calls, length, batch, settings.rounds, bar.update)
                    found += [{"length": length, "batch": batch, **row} for row in rows]
    return found


def measure(calls, length, batch, rounds, tick):
    """Calls all encoders in turn.

    Args:
        calls: dictionary, label -> function of a list of tensors.
        length: tokens per row.
        batch: rows per call.
        rounds: rounds that count.
        tick: called after each call of each of `rounds + UNCOUNTED` rounds.

    Returns:
        List of rows: `encoder`, `ms` (median), and in `ratios`, by `BASELINE` and `PEER`, `median`
        and 95 % `interval` of the ratios to that one's time in the same round.
    """
    values = inputs(length, batch)
    times = {label: [] for label in calls}
    for _, label in turns(calls, rounds, UNCOUNTED):
        started = time.perf_counter()
        calls[label](values)
        times[label].append(time.perf_counter() - started)
        tick()
    times = {label: found[UNCOUNTED:] for label, found in times.items()}
    return [
        {
            "encoder": label,
            "ms": 1e3 * statistics.median(found),
            "ratios": {other: _ratio(found, times[other]) for other in (BASELINE, PEER)},
        }
        for label, found in times.items()
    ]


def _ratio(ours, theirs):
    found = sorted(ratios(ours, theirs))
    return {"median": statistics.median(found), "interval": median_interval(found)}
