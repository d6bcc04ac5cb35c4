"""Is another method better, or were its seeds lucky?"""

import dataclasses
import math

import numpy as np

from keras_tupe.metrics._checks import numbers, share
from keras_tupe.metrics.mean_interval import mean_and_error, student_quantile

_FEWEST_PAIRS = 3
_POWER = 0.8


@dataclasses.dataclass(frozen=True)
class PairedDifference:
    """The difference of two methods, from runs with equal seeds.

    Args:
        mean: of the differences, other less baseline.
        low: lower end of the interval for the true difference.
        high: its upper end.
        p_value: how probable a mean at least as far from 0 were, if there was no difference.
        count: number of pairs.
        detectable: size of the true difference that this many pairs, with the spread seen, find
            in 4 of 5 cases. Itself uncertain, as the spread is.
        too_few: whether the pairs are too few to tell which method is higher: fewer than 3, or
            the interval holds 0.
        verdict: the same in a sentence.
    """

    mean: float
    low: float
    high: float
    p_value: float
    count: int
    detectable: float
    too_few: bool
    verdict: str


def paired_difference(baseline, other, level=0.95):
    """Compares two methods by Student's paired t test over seeds.

    Equation, with d the differences other less baseline, s their standard deviation (n - 1 below
    the line) and t Student's quantile of (1 + level) / 2 with n - 1 degrees of freedom:

        interval    mean(d)  -+  t s / sqrt(n)
        p_value     P(|T| >= |mean(d)| sqrt(n) / s)
        detectable  D sqrt(n) / s = the noncentrality at which P(T > t) is 0.8

    Args:
        baseline: one number for each seed, `(n,)`.
        other: the other method's numbers, `(n,)`, of the same seeds in the same order.
        level: of the interval; 1 - level is the limit of the p-value. Defaults to 0.95.

    Returns:
        A `PairedDifference`. Special cases, by the number of pairs and what they are:

            one pair            `low`, `high`, `p_value`, `detectable` NaN; too few
            two pairs           computed, but always too few
            all differences 0   interval 0 to 0, `p_value` 1 (the formula says 0/0)
            all equal, not 0    interval without width, `p_value` 0, the limit of the formula;
                                the verdict says that seeds which change nothing prove little

        Differences that vary by rounding alone count as equal, and as 0 if rounding explains them.

    Raises:
        TypeError: if the values are not real numbers or `level` is not a number.
        ValueError: if there are none, one has more than the other, one is not finite, or `level`
            is not between 0 and 1.

    Notes:
        The test knows one comparison. Of 7 methods that all equal the baseline, one or more looks
        different at 95 % in up to 1 - 0.95^7 = 30 % of the tables. For one false claim in 20 tables
        divide by their number: `level=1 - 0.05 / 7` (Bonferroni).

    Example:
        >>> found = paired_difference([80.1, 79.5, 80.9, 80.3], [80.9, 80.6, 81.5, 81.2])
        >>> found.verdict
        '+0.85 over 4 pairs (95 % interval +0.519 to +1.18, p = 0.0038): higher than the baseline.'
        >>> paired_difference([80.1], [80.9]).too_few
        True

    References:
        Student. The Probable Error of a Mean. Biometrika 6, 1908.
    """
    differences, level = _differences(baseline, other), share(level)
    count = len(differences)
    mean, error = mean_and_error(differences)
    p_value, reach, detectable = _judge(mean, error, count, level)
    low, high = mean - reach, mean + reach
    # Written so that NaN is too few. Equal pairs tell all that they can.
    told = low > 0 or high < 0 or (error == 0 and mean == 0)
    too_few = count < _FEWEST_PAIRS or not told
    found = PairedDifference(mean, low, high, p_value, count, detectable, too_few, "")
    return dataclasses.replace(found, verdict=_verdict(found, level))


def _differences(baseline, other):
    baseline, other = numbers(baseline, "baseline"), numbers(other, "other")
    if len(baseline) != len(other):
        raise ValueError(
            "Both methods need a number for each of the same seeds. "
            f"Received: {len(baseline)} of the baseline, {len(other)} of the other"
        )
    largest = max(abs(baseline).max(), abs(other).max())
    with np.errstate(over="ignore"):
        differences = other - baseline
    if not np.isfinite(differences).all():
        raise ValueError(
            "The methods differ by more than a float64 holds. Received: baseline and other with "
            f"numbers of up to {largest:.3g}"
        )
    rounding = 4 * np.finfo("float64").eps * largest
    if abs(differences).max() <= rounding:
        return np.zeros_like(differences)
    if differences.max() <= differences.min() + rounding:
        return np.full_like(differences, np.median(differences))
    return differences


def _judge(mean, error, count, level):
    """Returns p-value, half the width of the interval, and the difference one could have found."""
    if count == 1:
        return math.nan, math.nan, math.nan
    if error == 0:
        return (1.0 if mean == 0 else 0.0), 0.0, 0.0
    import scipy.special  # takes a second, and importing this package should not

    quantile = student_quantile((1 + level) / 2, count - 1)
    p_value = 2 * float(scipy.special.stdtr(count - 1, -abs(mean / error)))
    noncentrality = float(scipy.special.nctdtrinc(count - 1, 1 - _POWER, quantile))
    return p_value, quantile * error, noncentrality * error


def _verdict(found, level):
    count, pairs = found.count, "1 pair" if found.count == 1 else f"{found.count} pairs"
    if count == 1:
        return (
            f"Too few to tell: {found.mean:+.3g} in 1 pair, which tells nothing of the spread; "
            f"run at least {_FEWEST_PAIRS} seeds."
        )
    if found.low == found.high:
        equal = "no difference in any" if found.mean == 0 else f"{found.mean:+.3g} in each"
        return (
            f"{'Too few to tell' if found.too_few else 'No spread to judge by'}: {equal} of "
            f"{pairs}; the seeds change nothing, so look whether the runs really differ."
        )
    numbers_found = (
        f"{found.mean:+.3g} over {pairs} ({100 * level:.6g} % interval {found.low:+.3g} to "
        f"{found.high:+.3g}, p = {found.p_value:.2g})"
    )
    if found.too_few:
        return (
            f"Too few to tell: {numbers_found}; {pairs} with this spread find, 4 times in 5, "
            f"a true difference of {found.detectable:.2g} or more."
        )
    return f"{numbers_found}: {'higher' if found.mean > 0 else 'lower'} than the baseline."
