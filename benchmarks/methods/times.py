"""Times of train steps and inference of several models, in interleaved rounds.

The standard library only, since the peer's environment has no Keras.
"""

import statistics
import time

from benchmarks.harness.rounds import quartiles, ratios, turns

PARTS = ("train", "inference")


def measure(steps, rounds, tick):
    """Times steps of several models in turn.

    Each round does one train step and one inference of every model; a first one is not counted.

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
    for _, label in turns(steps, rounds):
        for part, step in zip(PARTS, steps[label], strict=True):
            started, cpu_started = time.perf_counter(), time.process_time()
            step()
            cpu[label, part].append(time.process_time() - cpu_started)
            wall[label, part].append(time.perf_counter() - started)
        tick()
    for times in (*wall.values(), *cpu.values()):
        del times[0]  # still warming up, even if all has been compiled
    baseline = next(iter(steps))
    return {label: row(label, baseline, wall, cpu) for label in steps}


def row(label, baseline, wall, cpu):
    """Returns the numbers of a model, from the seconds of all by (label, part)."""
    found = {}
    for part in PARTS:
        to_baseline = ratios(wall[label, part], wall[baseline, part])
        cpu_ratios = ratios(cpu[label, part], cpu[baseline, part])
        found[f"{part}_ms"] = 1e3 * statistics.median(wall[label, part])
        found[f"{part}_ratio"] = statistics.median(to_baseline)
        found[f"{part}_ratio_quartiles"] = quartiles(to_baseline)
        found[f"{part}_cpu_ratio"] = statistics.median(cpu_ratios)
    return found
