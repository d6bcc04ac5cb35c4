"""Interleaved timing: what else the machine does hits all methods of a round alike.

The standard library only, since the peer's environment has no Keras.
"""

import statistics
import time

PARTS = ("train", "inference")


def measure(steps, rounds, tick):
    """Times steps of several models in turn.

    Each round does one train step and one inference of every model. The order is reversed in
    every other round, so that no model always follows the same one. A first round is not counted.

    Args:
        steps: dictionary, label -> (train, inference), functions without arguments that return
            when the result is there. The first label is the baseline.
        rounds: number of rounds, > 0.
        tick: function without arguments, called after each model of each of `rounds + 1` rounds.

    Returns:
        A dictionary, label -> row. For `train` and `inference`: `..._ms`, the median
        milliseconds; `..._ratio`, the median over rounds of the time by the baseline's in the
        same round; `..._ratio_quartiles`, of the same ratios; `..._cpu_ratio`, as `..._ratio`
        for the processor time of all threads.
    """
    wall = {(label, part): [] for label in steps for part in PARTS}
    cpu = {key: [] for key in wall}
    for index in range(rounds + 1):
        for label in list(steps)[:: -1 if index % 2 else 1]:
            for part, step in zip(PARTS, steps[label], strict=True):
                started, cpu_started = time.perf_counter(), time.process_time()
                step()
                cpu[label, part].append(time.process_time() - cpu_started)
                wall[label, part].append(time.perf_counter() - started)
            tick()
    for times in (*wall.values(), *cpu.values()):
        del times[0]  # still warming up, even if all has been compiled
    baseline = next(iter(steps))
    return {label: _row(label, baseline, wall, cpu) for label in steps}


def _row(label, baseline, wall, cpu):
    row = {}
    for part in PARTS:
        ratios = _ratios(wall[label, part], wall[baseline, part])
        row[f"{part}_ms"] = 1e3 * statistics.median(wall[label, part])
        row[f"{part}_ratio"] = statistics.median(ratios)
        row[f"{part}_ratio_quartiles"] = _quartiles(ratios)
        row[f"{part}_cpu_ratio"] = statistics.median(_ratios(cpu[label, part], cpu[baseline, part]))
    return row


def _ratios(times, baselines):
    # a step below the clock's resolution must not divide by zero
    return [time / max(base, 1e-9) for time, base in zip(times, baselines, strict=True)]


def _quartiles(values):
    """Returns the lower and the upper quartile; of one value, itself twice."""
    if len(values) == 1:
        return [values[0], values[0]]
    lower, _, upper = statistics.quantiles(values, n=4, method="inclusive")
    return [lower, upper]
