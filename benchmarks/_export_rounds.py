"""Interleaved calls of exported encoders."""

import math
import statistics
import time

from benchmarks._export_cases import BASELINE, PEER, inputs


def measure(calls, length, batch, rounds, tick):
    """Calls all encoders in turn, in every other round in the opposite order.

    Args:
        calls: dictionary, label -> function of a list of tensors.
        length: tokens per row.
        batch: rows per call.
        rounds: rounds that count; two go before.
        tick: called after each of `rounds + 2` rounds.

    Returns:
        List of rows: `encoder`, `ms` (median), and in `ratios`, by `BASELINE` and `PEER`, `median`
        and 95 % `interval` of the ratios to that one's time in the same round.
    """
    values = inputs(length, batch)
    times = {label: [] for label in calls}
    for index in range(rounds + 2):
        for label in list(calls)[:: -1 if index % 2 else 1]:
            started = time.perf_counter()
            calls[label](values)
            times[label].append(time.perf_counter() - started)
        tick()
    times = {label: found[2:] for label, found in times.items()}
    return [
        {
            "encoder": label,
            "ms": 1e3 * statistics.median(found),
            "ratios": {other: _ratio(found, times[other]) for other in (BASELINE, PEER)},
        }
        for label, found in times.items()
    ]


def _ratio(ours, theirs):
    ratios = sorted(a / b for a, b in zip(ours, theirs, strict=True))
    return {"median": statistics.median(ratios), "interval": median_interval(ratios)}


def median_interval(values):
    """Returns the 95 % interval of the median of a sorted list, by the binomial distribution.

    No shape of the distribution is assumed: values number k and n + 1 - k, with the largest k that
    leaves at most 2.5 % on each side.
    """
    n = len(values)
    below, rank = 0.0, 0
    while below + math.comb(n, rank) / 2**n <= 0.025:
        below += math.comb(n, rank) / 2**n
        rank += 1
    rank = max(rank, 1)
    return [values[rank - 1], values[n - rank]]
