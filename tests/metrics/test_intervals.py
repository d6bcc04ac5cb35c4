"""Wilson's interval of a share and Student's of a mean, against SciPy and by simulation."""

import math

import numpy as np
import pytest
import scipy.stats

from keras_tupe.metrics import mean_interval, wilson_interval


@pytest.mark.parametrize("count", [1, 2, 7, 1000, 67_000])
@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_wilsons_interval_equals_scipys(count, level):
    for successes in {0, 1, count // 3, count - 1, count}:
        theirs = scipy.stats.binomtest(successes, count).proportion_ci(level, method="wilson")
        assert wilson_interval(successes, count, level) == pytest.approx(tuple(theirs), abs=1e-12)


@pytest.mark.parametrize("count", [1, 3, 1000, 10**9])
def test_wilsons_interval_stays_inside_and_keeps_a_width_at_the_ends(count):
    low, high = wilson_interval(0, count)
    assert low == 0 < high < 1
    mirrored = wilson_interval(np.int64(count), np.int64(count))
    assert mirrored[1] == 1
    assert mirrored[0] == pytest.approx(1 - high, abs=1e-15)


@pytest.mark.parametrize(
    ("successes", "count", "level", "error", "words"),
    [
        (0, 0, 0.95, ValueError, "`count` must be at least 1.*count=0"),
        (5, 4, 0.95, ValueError, "between 0 and `count`. Received: successes=5, count=4"),
        (-1, 4, 0.95, ValueError, "successes=-1"),
        (0.8, 4, 0.95, TypeError, "`successes` must be an integer. Received: successes=0.8"),
        (1, "4", 0.95, TypeError, "`count` must be an integer"),
        (1, 4, 95, ValueError, "as 0.95 for 95 %. Received: level=95"),
        (1, 4, 0, ValueError, "level=0"),
        (1, 4, 1.0, ValueError, "level=1.0"),
        (1, 4, math.nan, ValueError, "level=nan"),
        (1, 4, "0.95", TypeError, "`level` must be a number.*level='0.95'"),
        (1, 4, True, TypeError, "level=True"),
    ],
)
def test_a_share_that_is_none_is_refused_with_a_sentence(successes, count, level, error, words):
    with pytest.raises(error, match=words):
        wilson_interval(successes, count, level)


@pytest.mark.parametrize("count", [2, 3, 5, 40])
@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_students_interval_equals_scipys(count, level, scale):
    values = 70 + np.random.default_rng(count).normal(size=count)
    theirs = scipy.stats.ttest_1samp(values, 0).confidence_interval(level)
    expected = np.array([values.mean(), *theirs]) * scale
    np.testing.assert_allclose(mean_interval(values * scale, level), expected, rtol=1e-12)


def test_one_run_has_a_mean_and_no_interval():
    mean, low, high = mean_interval([82.5])
    assert mean == 82.5
    assert math.isnan(low)
    assert math.isnan(high)


@pytest.mark.parametrize("value", [0.0, 0.1, -3.7, 1e300, 5e-324])
@pytest.mark.parametrize("count", [2, 3, 10])
def test_equal_runs_have_an_interval_without_width(value, count):
    assert mean_interval([value] * count) == (value, value, value)


def test_the_interval_of_the_largest_numbers_is_an_interval():
    largest = np.finfo("float64").max
    mean, low, high = mean_interval([largest, -largest])
    assert (mean, low, high) == (0, -math.inf, math.inf)


def test_students_interval_of_three_runs_holds_the_truth_as_often_as_it_says():
    rng = np.random.default_rng(0)
    held = 0
    for values in rng.normal(5, 2, size=(1000, 3)):
        _, low, high = mean_interval(values, 0.9)
        held += low <= 5 <= high
    low, high = wilson_interval(held, 1000, 0.999)
    assert low < 0.9 < high


@pytest.mark.parametrize(
    ("values", "level", "error", "words"),
    [
        ([], 0.95, ValueError, "`values` must hold at least one number"),
        ([[1.0, 2.0]], 0.95, ValueError, "`values` must be a row of numbers.*shape \\(1, 2\\)"),
        ([1.0, math.nan], 0.95, ValueError, "`values` must be finite.*1 values"),
        (["1"], 0.95, TypeError, "`values` must hold real numbers"),
        ([1.0, 2.0], 1, ValueError, "level=1"),
        ([1.0, 2.0], None, TypeError, "level=None"),
    ],
)
def test_a_mean_that_is_none_is_refused_with_a_sentence(values, level, error, words):
    with pytest.raises(error, match=words):
        mean_interval(values, level)
