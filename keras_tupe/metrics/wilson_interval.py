"""How far a share of successes is to be trusted."""

import math
import operator
import statistics

from keras_tupe.metrics._checks import share


def wilson_interval(successes, count, level=0.95):
    """Returns Wilson's interval for the probability behind a share of successes.

    Equation (Wilson 1927), with p = successes / n and z the normal quantile of (1 + level) / 2:

        (p + z^2 / 2n  -+  z sqrt(p (1 - p) / n + z^2 / 4n^2)) / (1 + z^2 / n)

    Unlike p -+ z sqrt(p (1 - p) / n) it stays inside [0, 1] and has a width at 0 and at n.

    Args:
        successes: integer, 0 to `count`.
        count: number n of independent trials, at least 1.
        level: share of such intervals that hold the true value. Defaults to 0.95.

    Returns:
        Tuple `(low, high)` of floats in [0, 1].

    Raises:
        TypeError: if a count is not an integer or `level` not a number.
        ValueError: if `count` is below 1, `successes` outside 0 to `count`, or `level` not
            between 0 and 1.

    Example:
        >>> low, high = wilson_interval(80, 100)
        >>> round(low, 3), round(high, 3)
        (0.711, 0.867)

    References:
        Wilson. Probable Inference, the Law of Succession, and Statistical Inference. Journal of
        the American Statistical Association 22, 1927.
    """
    successes, count = _integer(successes, "successes"), _integer(count, "count")
    if count < 1:
        raise ValueError(
            f"`count` must be at least 1; no trials have no share. Received: count={count}"
        )
    if not 0 <= successes <= count:
        raise ValueError(
            "`successes` must lie between 0 and `count`. "
            f"Received: successes={successes}, count={count}"
        )
    z = statistics.NormalDist().inv_cdf((1 + share(level)) / 2)
    # Numerator and denominator times n, so that 0 successes give exactly 0.
    middle = successes + z**2 / 2
    reach = z * math.sqrt(successes * (count - successes) / count + z**2 / 4)
    low = (middle - reach) / (count + z**2)
    high = 1.0 if successes == count else (middle + reach) / (count + z**2)
    return low, high


def _integer(value, name):
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"`{name}` must be an integer. Received: {name}={value!r}") from None
