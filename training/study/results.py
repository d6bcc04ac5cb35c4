"""The numbers of a study: rows of runs, means over seeds, differences, steps saved."""

import dataclasses
import math
import pathlib

import numpy as np

from keras_tupe.metrics import PairedDifference, mean_interval, paired_difference

LEVEL = 0.05  # a p-value below it counts

DIVERGED = "not_finite_at_step"  # of what a run found whose training diverged


@dataclasses.dataclass(frozen=True)
class Finished:
    """A run that is there.

    Attributes:
        folder: its `pathlib.Path`.
        name, kind, place, shared, own: as of the `Run`.
        found: what it found, a dictionary.
        origin: its commit and the kind of its machine, a dictionary.
    """

    folder: pathlib.Path
    name: str
    kind: str
    place: dict
    shared: dict
    own: dict
    found: dict
    origin: dict


class Results:
    """The finished runs of a study.

    Args:
        runs: list of `Finished`.

    Attributes:
        runs: the same.
        unfinished: names of the runs that were asked for and are not there.
    """

    def __init__(self, runs):
        self.runs, self.unfinished = runs, []

    def of(self, kind=None, **place):
        """Returns the runs of a kind and at a place, a list."""
        return [
            run
            for run in self.runs
            if kind in (None, run.kind) and place.items() <= run.place.items()
        ]

    def get(self, name):
        """Returns the run of a name, `None` if it is not there."""
        return next((run for run in self.runs if run.name == name), None)

    def rows(self):
        """Returns all scores, one row each: the place of the run, `score`, `value` and the rest."""
        return [{**run.place, **row} for run in self.runs for row in run.found.get("scores", ())]

    def numbers(self, by, **where):
        """Returns one score of each seed, by what is compared.

        Args:
            by: key of the rows, such as `"position"`.
            **where: what else rows must have, such as `score="BLiMP"`.

        Returns:
            Dictionary: name -> dictionary seed -> number. A score that is `None` is left out.
        """
        found = {}
        for row in self.rows():
            if where.items() <= row.items() and row["value"] is not None:
                found.setdefault(row[by], {})[row["seed"]] = row["value"]
        return found

    @property
    def scores(self):
        """Names of all scores, in the order of the rows."""
        return list(dict.fromkeys(row["score"] for row in self.rows()))

    @property
    def diverged(self):
        """Dictionary: name of each run that diverged -> its step."""
        return {run.name: run.found[DIVERGED] for run in self.runs if DIVERGED in run.found}

    @property
    def seconds(self):
        """Seconds of all runs."""
        return sum(run.found["seconds"] for run in self.runs)

    @property
    def commits(self):
        """The commits that the runs were made with, sorted."""
        return sorted({str(run.origin["commit"]) for run in self.runs})

    @property
    def machine(self):
        """The kind of machine of the last run."""
        return self.runs[-1].origin["machine"]


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
