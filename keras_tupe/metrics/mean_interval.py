"""How far the mean of a few runs is to be trusted."""

import math

import numpy as np

from keras_tupe.metrics._checks import numbers, share
from keras_tupe.metrics._scaled import scaled


def mean_interval(values, level=0.95):
    """Returns the mean of some runs and Student's interval for the mean behind it.

    Equation, with s the standard deviation (n - 1 below the line) and t Student's quantile of
    (1 + level) / 2 with n - 1 degrees of freedom:

        mean  -+  t s / sqrt(n)

    Args:
        values: one number for each run, `(n,)`.
        level: share of such intervals that hold the true mean, if the runs are independent and
            normally distributed. Defaults to 0.95.

    Returns:
        Tuple `(mean, low, high)` of floats. With one run, which tells nothing of the spread, `low`
        and `high` are NaN; with equal runs all three are equal.

    Raises:
        TypeError: if the values are not real numbers or `level` is not a number.
        ValueError: if there are none, one is not finite, or `level` is not between 0 and 1.

    Example:
        >>> mean, low, high = mean_interval([80.1, 79.5, 80.9])
        >>> round(mean, 2), round(low, 2), round(high, 2)
        (80.17, 78.42, 81.91)

    References:
        Student. The Probable Error of a Mean. Biometrika 6, 1908.
    """
    values, level = numbers(values, "values"), share(level)
    mean, error = mean_and_error(values)
    reach = student_quantile((1 + level) / 2, len(values) - 1) * error if error else error
    return mean, mean - reach, mean + reach


def mean_and_error(values):
    """Returns the mean and its standard error s / sqrt(n): 0.0 if all are equal, NaN if n = 1."""
    small, exponent = scaled(values)
    equal = np.ptp(small) == 0
    mean = values[0] if equal else np.ldexp(small.mean(), exponent)
    if len(values) == 1:
        return float(mean), math.nan
    if equal:
        return float(mean), 0.0
    error = small.std(ddof=1) / math.sqrt(len(values))  # at most 1, so that it fits when scaled
    return float(mean), float(np.ldexp(error, exponent))


def student_quantile(probability, degrees):
    """Returns Student's t with that probability below it; NaN without degrees of freedom."""
    if degrees == 0:
        return math.nan
    import scipy.stats  # takes a second, and importing this package should not

    return float(scipy.stats.t.ppf(probability, degrees))
