"""How far a score of one sample of rows is to be trusted."""

import numpy as np

from keras_tupe.metrics._checks import share


def bootstrap_interval(score, *columns, resamples=1000, level=0.95, seed=0):
    """Returns a score of rows and the bootstrap's percentile interval for it.

    Equation, with S the score of the n rows and S*_1 .. S*_B those of n rows each that are drawn
    from them with replacement, whole rows together:

        low, high = the quantiles (1 - level) / 2 and (1 + level) / 2 of S*_1 .. S*_B

    It says what other rows of the same kind would change, not what another training would.

    Args:
        score: function of as many arrays as there are columns, which returns a number.
        *columns: arrays of n rows each, n >= 2, such as labels and predictions.
        resamples: number of draws B. Defaults to 1000.
        level: share of such intervals that hold the true score, about. Defaults to 0.95.
        seed: an integer >= 0; the same seed draws the same rows.

    Returns:
        Tuple `(score, low, high)` of floats.

    Raises:
        TypeError: if `level` is not a number or `resamples` not an integer.
        ValueError: if there is no column, or columns are of different lengths or shorter than two;
            if `resamples` is below 1 or `level` is not between 0 and 1.

    Example:
        >>> from keras_tupe.metrics import accuracy
        >>> labels, found = [0, 1, 1, 0, 1, 0, 1, 1], [0, 1, 0, 0, 1, 0, 1, 1]
        >>> value, low, high = bootstrap_interval(accuracy, labels, found)
        >>> value, low, high
        (0.875, 0.625, 1.0)

    References:
        Efron. Bootstrap Methods: Another Look at the Jackknife. Annals of Statistics 7, 1979.
    """
    level = share(level)
    if isinstance(resamples, bool) or not isinstance(resamples, (int, np.integer)):
        raise TypeError(f"`resamples` must be an integer. Received: resamples={resamples!r}")
    if resamples < 1:
        raise ValueError(f"`resamples` must be at least 1. Received: resamples={resamples}")
    columns = [np.asarray(column) for column in columns]
    sizes = [len(column) if column.ndim else 0 for column in columns]
    if not sizes or len(set(sizes)) > 1 or sizes[0] < 2:
        raise ValueError(
            "A bootstrap needs columns of equally many rows, two at least. "
            f"Received: columns of {sizes} rows"
        )
    generator = np.random.default_rng(seed)
    drawn = []
    for _ in range(resamples):
        rows = generator.integers(0, sizes[0], sizes[0])
        drawn.append(float(score(*(column[rows] for column in columns))))
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    return float(score(*columns)), float(low), float(high)
