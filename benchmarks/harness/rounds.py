"""Interleaved rounds, and the statistics of their times: what else a machine does hits all alike.

The standard library only, since the peer's environment has no Keras.
"""

import math
import statistics


def turns(labels, rounds, uncounted=1):
    """Yields `(index, label)` for every turn of `uncounted + rounds` rounds.

    The order is reversed in every other round, so that none always follows the same one.

    Example:
        >>> "".join(label for _, label in turns("abc", rounds=2))
        'abccbaabc'
    """
    for index in range(uncounted + rounds):
        for label in list(labels)[:: -1 if index % 2 else 1]:
            yield index, label


def ratios(times, baselines):
    """Returns the times by those of the baseline in the same rounds."""
    # a step below the clock's resolution must not divide by zero
    return [time / max(base, 1e-9) for time, base in zip(times, baselines, strict=True)]


def quartiles(values):
    """Returns the lower and the upper quartile; of one value, itself twice.

    Example:
        >>> quartiles([4.0, 1.0, 3.0, 2.0, 5.0])
        [2.0, 4.0]
    """
    if len(values) == 1:
        return [values[0], values[0]]
    lower, _, upper = statistics.quantiles(values, n=4, method="inclusive")
    return [lower, upper]


def median_interval(values):
    """Returns the 95 % interval of the median of a sorted list, by the binomial distribution.

    No shape of the distribution is assumed: values number k and n + 1 - k, with the largest k that
    leaves at most 2.5 % on each side.
    """
    n = len(values)
    below, rank = 0.0, 0
    while below + math.comb(n, rank) / 2**n <= 0.025:
        below += math.comb(n, rank) / 2**n
        rank += 1
    rank = max(rank, 1)
    return [values[rank - 1], values[n - rank]]
