"""The numbers of an ablation: means over seeds, differences to the baseline, steps saved."""

import dataclasses
import math

import numpy as np

from keras_tupe.metrics import PairedDifference, mean_interval, paired_difference

LEVEL = 0.05  # a p-value below it counts


@dataclasses.dataclass(frozen=True)
class Summary:
    """What the seeds of one method tell of one number.

    Attributes:
        values: dictionary seed -> number.
        mean, low, high: mean and its 95 % interval, which is NaN of one seed.
        difference: a `PairedDifference` to the baseline over the seeds of both; `None` for the
            baseline itself, and where it has none of the seeds.
        adjusted_p: p-value of the difference times the number of comparisons, by Holm; `None`
            without a difference, NaN where `p_value` is.
    """

    values: dict
    mean: float
    low: float
    high: float
    difference: PairedDifference | None = None
    adjusted_p: float | None = None

    @property
    def has_no_spread(self):
        """Whether all seeds differ alike, and not by 0: nothing to judge a difference by."""
        found = self.difference
        return found is not None and found.low == found.high and found.mean != 0

    @property
    def p_value(self):
        """The p-value of the difference; NaN of one seed, and of seeds that change nothing."""
        return math.nan if self.has_no_spread else self.difference.p_value

    def conclusion(self):
        """Returns in a word or two what the seeds tell, `""` for the baseline."""
        found = self.difference
        if found is None:
            return ""
        if found.too_few:
            return "too few seeds to tell"
        if found.mean == 0:
            return "equal"
        if self.has_no_spread:
            return "no spread to judge by"
        if self.adjusted_p < LEVEL:
            return "higher" if found.mean > 0 else "lower"
        return f"{'higher' if found.mean > 0 else 'lower'}, but not after Holm"

    def record(self):
        """Returns all of it, a dictionary of values that JSON can hold, but for NaN."""
        found = self.difference and {**vars(self.difference), "p_value": self.p_value}
        return {**vars(self), "difference": found, "conclusion": self.conclusion()}


def summarize(numbers, baseline):
    """Compares methods in one number.

    Args:
        numbers: dictionary: method -> dictionary seed -> number. Methods without numbers are left
            out.
        baseline: name of the method to compare with; it may be missing.

    Returns:
        Dictionary: method -> `Summary`.
    """
    found = {}
    for name, values in numbers.items():
        if not values:
            continue
        seeds = sorted(values)
        found[name] = Summary(
            {seed: values[seed] for seed in seeds},
            *mean_interval([values[seed] for seed in seeds]),
            _difference(numbers.get(baseline, {}), values) if name != baseline else None,
        )
    compared = [name for name, summary in found.items() if summary.difference is not None]
    adjusted = holm([found[name].p_value for name in compared])
    for name, p_value in zip(compared, adjusted, strict=True):
        found[name] = dataclasses.replace(found[name], adjusted_p=p_value)
    return found


def _difference(baseline, other):
    seeds = sorted(set(baseline) & set(other))
    if not seeds:
        return None
    return paired_difference([baseline[seed] for seed in seeds], [other[seed] for seed in seeds])


def holm(p_values):
    """Returns p-values that hold for all comparisons together (Holm 1979), in the same order.

    If none of the methods differs from the baseline, the chance that any of these is below 0.05
    is at most 0.05. NaN, a comparison that tells nothing, stays NaN and counts as one.

    Example:
        >>> holm([0.04, 0.01, 0.5])
        [0.08, 0.03, 0.5]
    """
    order = sorted(
        range(len(p_values)), key=lambda index: (math.isnan(p_values[index]), p_values[index])
    )
    adjusted, largest = [math.nan] * len(p_values), 0.0
    for rank, index in enumerate(order):
        if math.isnan(p_values[index]):
            break
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = largest
    return adjusted


def steps_to_reach(steps, losses, target):
    """Returns after how many steps a held-out loss first was at most `target`.

    Between two validations the loss is taken to fall on a line. If the first validation is below
    already, its step is returned: what was before is not known.

    Args:
        steps: ascending steps of the validations.
        losses: the loss at each.
        target: the loss to reach.

    Returns:
        Steps, a float; `None` if it was never reached.

    Example:
        >>> steps_to_reach([100, 200, 300], [5.0, 4.0, 3.0], 3.5)
        250.0
    """
    below = np.flatnonzero(np.asarray(losses) <= target)
    if not len(below):
        return None
    index = int(below[0])
    if index == 0:
        return float(steps[0])
    before, after = losses[index - 1], losses[index]
    share = (before - target) / (before - after)
    return float(steps[index - 1] + share * (steps[index] - steps[index - 1]))
