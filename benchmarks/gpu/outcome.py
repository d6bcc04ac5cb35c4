"""What a process of `benchmarks.gpu` tells of its steps, with Keras or without."""

import statistics

from benchmarks.harness.rounds import quartiles
from benchmarks.training.batch import WARM_UP_STEPS


def outcome(seconds, losses, peak):
    """Returns what is told of steps: their seconds and losses, and the peak of memory in bytes."""
    milliseconds = [1e3 * one for one in seconds[WARM_UP_STEPS:]]
    return {
        "ms": statistics.median(milliseconds),
        "ms_quartiles": quartiles(milliseconds),
        "first_loss": losses[0],
        "last_loss": losses[-1],
        "peak_memory_mib": None if peak is None else peak / 2**20,
    }
