"""After what share of the steps a method is where the baseline ends."""

import dataclasses

from keras_tupe.metrics import mean_interval
from training.ablate.statistics import steps_to_reach


@dataclasses.dataclass(frozen=True)
class Shares:
    """When a method reached the last loss, or score, that the baseline has with the same seed.

    Attributes:
        values: dictionary seed -> share of all steps; `None` if it was never reached.
        mean, low, high: of those that reached it, with the 95 % interval, cut at 0 and at 1, where
            no share can be; `None` if none did.
    """

    values: dict
    mean: float | None
    low: float | None
    high: float | None

    @property
    def num_not_reached(self):
        """Number of seeds that never reached it."""
        return sum(value is None for value in self.values.values())

    def record(self):
        """Returns all of it, a dictionary of values that JSON can hold, but for NaN."""
        return {**vars(self), "num_not_reached": self.num_not_reached}


def shares_to_baseline(curves, baseline, steps):
    """Returns the `Shares` of each method; those without a seed of the baseline are left out.

    Args:
        curves: dictionary: method -> seed -> pair: ascending steps, and the loss at each.
        baseline: name of a method, which may be missing.
        steps: all steps of a run.
    """
    found = {}
    for name, seeds in curves.items():
        values = {
            seed: steps_to_reach(*curve, curves[baseline][seed][1][-1])
            for seed, curve in seeds.items()
            if seed in curves.get(baseline, ())
        }
        values = {seed: None if at is None else at / steps for seed, at in values.items()}
        reached = [value for value in values.values() if value is not None]
        mean, low, high = mean_interval(reached) if reached else (None, None, None)
        if len(reached) > 1:
            low, high = max(low, 0.0), min(high, 1.0)
        if values:
            found[name] = Shares(values, mean, low, high)
    return found
