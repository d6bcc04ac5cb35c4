"""Medians of a grid of runs over seeds, the best learning rate, the average."""

import dataclasses
import math
import statistics

from training.finetune_glue.protocol import COLUMNS


@dataclasses.dataclass(frozen=True)
class ColumnResult:
    """The grid of one column.

    A run whose loss became infinite has the score `None`; it counts as the worst of all.

    Attributes:
        rates: learning rate -> list of the scores of its seeds, percent.
    """

    rates: dict

    @property
    def medians(self):
        """Learning rate -> median over its seeds, `None` if that lies among failed runs."""
        return {rate: median(values) for rate, values in self.rates.items()}

    @property
    def best_rate(self):
        """The learning rate with the highest median; the lowest of equals; `None` if all fail."""
        known = [(rate, value) for rate, value in self.medians.items() if value is not None]
        return min(known, key=lambda item: (-item[1], item[0]))[0] if known else None

    @property
    def score(self):
        """Median of the best learning rate, or `None`."""
        return self.medians.get(self.best_rate)


def median(values):
    """Returns the median of scores, `None` below all numbers; `None` if the median is not a number.

    Example:
        >>> median([60.0, None, 50.0]), median([60.0, None])
        (50.0, None)
    """
    found = statistics.median(-math.inf if value is None else value for value in values)
    return found if math.isfinite(found) else None


def seed_of_median(values):
    """Returns the index of the score that is the nearest to the median, the first of equals.

    Args:
        values: scores by seed; their median is a number.
    """
    middle = median(values)
    known = [(abs(value - middle), seed) for seed, value in enumerate(values) if value is not None]
    return min(known)[1]


def average(results):
    """Returns the plain mean over columns, and what it is called.

    Args:
        results: dictionary of column's name -> `ColumnResult`.

    Returns:
        The mean, `None` if a column has no score, and a phrase such as "mean of 5 of 9 columns".
    """
    values = [result.score for result in results.values()]
    count = f"{len(values)} of " if len(values) < len(COLUMNS) else "all "
    mean = None if None in values else statistics.fmean(values)
    return mean, f"mean of {count}{len(COLUMNS)} columns"
