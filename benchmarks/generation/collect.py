"""Interleaved calls of models that write."""

import statistics
import time

from tqdm import tqdm

from benchmarks.generation.cases import BASELINE, PEER, call, models
from benchmarks.harness.rounds import median_interval, ratios, turns


def collect(settings):
    """Measures all batches; returns a list of rows.

    Args:
        settings: a `Settings` without problems.

    Returns:
        Rows with `batch`, `model`, `tokens_per_second` of the batch (median) and, in `ratios`, by
        `BASELINE` and `PEER`, the `median` and 95 % `interval` of the speed by that one's in the
        same round.
    """
    made, rows = models(settings), []
    total = len(settings.batches) * (settings.rounds + 1) * len(made)
    with tqdm(total=total, unit="call", disable=None) as bar:
        for batch in settings.batches:
            bar.set_description(f"batch {batch}")
            seconds = {label: [] for label in made}  # per token of a text
            for _, label in turns(made, settings.rounds):
                started = time.perf_counter()
                count = call(label, made[label], batch, settings)
                seconds[label].append((time.perf_counter() - started) / count)
                bar.update()
            seconds = {label: found[1:] for label, found in seconds.items()}  # the first compiles
            rows += [{"batch": batch, **_row(label, seconds, batch)} for label in made]
    return rows


def _row(label, seconds, batch):
    return {
        "model": label,
        "tokens_per_second": batch / statistics.median(seconds[label]),
        "ratios": {other: _faster(seconds[label], seconds[other]) for other in (BASELINE, PEER)},
    }


def _faster(ours, theirs):
    found = sorted(ratios(theirs, ours))
    return {"median": statistics.median(found), "interval": median_interval(found)}
