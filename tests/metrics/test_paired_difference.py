"""The paired test over seeds: against SciPy, by simulation, and where it must claim nothing."""

import math

import numpy as np
import pytest
import scipy.stats

from keras_tupe.metrics import mean_interval, paired_difference

BASELINE = [60.0, 61.0, 60.5, 60.2, 61.1]
HIGHER = [62.1, 62.8, 62.6, 62.0, 63.4]
UNCLEAR = [61.0, 60.1, 61.4, 59.9, 61.5]


def other(shift, spread=1.0, count=5):
    """Returns a baseline and a second method, `shift` higher but for noise of size `spread`."""
    rng = np.random.default_rng(count)
    baseline = rng.normal(60, 5, count)
    return baseline, baseline + shift + spread * rng.normal(size=count)


@pytest.mark.parametrize("count", [2, 3, 5, 30])
@pytest.mark.parametrize("level", [0.8, 0.95, 0.999])
@pytest.mark.parametrize("shift", [0.0, -1.0, 20.0])
def test_interval_and_p_value_equal_scipys_paired_test(count, level, shift):
    baseline, values = other(shift, count=count)
    found = paired_difference(baseline, values, level)
    theirs = scipy.stats.ttest_rel(values, baseline)
    low, high = theirs.confidence_interval(level)
    assert found.count == count
    np.testing.assert_allclose(
        [found.mean, found.low, found.high, found.p_value],
        [np.mean(values - baseline), low, high, theirs.pvalue],
        rtol=1e-10,
    )
    assert (found.p_value < 1 - level) == (not low <= 0 <= high)
    assert found.too_few == (count < 3 or low <= 0 <= high)
    same = mean_interval(values - baseline, level)
    np.testing.assert_allclose((found.mean, found.low, found.high), same, rtol=1e-12)


def test_a_clear_difference_is_told_with_its_direction():
    found = paired_difference(BASELINE, HIGHER)
    assert not found.too_few
    assert found.verdict == (
        "+2.02 over 5 pairs (95 % interval +1.75 to +2.29, p = 3.1e-05): higher than the baseline."
    )
    turned = paired_difference(HIGHER, BASELINE)
    assert turned.verdict.endswith("lower than the baseline.")
    assert (turned.mean, turned.low, turned.high) == (-found.mean, -found.high, -found.low)


def test_pairs_find_what_the_spread_over_seeds_would_hide():
    seeds = np.array([50.0, 60.0, 70.0, 80.0])
    gains = np.array([1.0, 1.1, 0.9, 1.0])
    assert not paired_difference(seeds, seeds + gains).too_few
    assert paired_difference(seeds, (seeds + gains)[[1, 2, 3, 0]]).too_few


def test_an_unclear_difference_says_what_could_have_been_found():
    found = paired_difference(BASELINE, UNCLEAR)
    assert found.low < 0 < found.high
    assert found.too_few
    assert found.verdict.startswith("Too few to tell: +0.22 over 5 pairs (95 % interval -0.")
    assert found.verdict.endswith(
        f"5 pairs with this spread find, 4 times in 5, a true difference of {found.detectable:.2g} "
        "or more."
    )


@pytest.mark.parametrize("count", [2, 3, 5])
def test_a_detectable_difference_is_found_four_times_in_five(count):
    baseline, values = other(0.0, count=count)
    found = paired_difference(baseline, values)
    spread = np.std(values - baseline, ddof=1)
    rng = np.random.default_rng(0)
    samples = rng.normal(found.detectable, spread, size=(20_000, count))
    theirs = scipy.stats.ttest_1samp(samples, 0, axis=1)
    share = np.mean((theirs.pvalue < 0.05) & (theirs.statistic > 0))
    assert share == pytest.approx(0.8, abs=4 * math.sqrt(0.8 * 0.2 / 20_000))


def test_more_seeds_detect_less():
    sizes = []
    for count in (2, 3, 5, 10, 20):
        signs = np.where(np.arange(count) % 2, 1.0, -1.0)
        signs *= math.sqrt((count - 1) / np.sum((signs - signs.mean()) ** 2))  # spread 1
        sizes.append(paired_difference(np.zeros(count), signs).detectable)
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > 10
    assert sizes[-1] < 0.7


def test_methods_that_are_equal_look_different_as_rarely_as_the_level_says():
    rng = np.random.default_rng(0)
    pairs = rng.normal(60, 3, size=(600, 2, 3))
    claims = sum(not paired_difference(*pair, level=0.9).too_few for pair in pairs)
    assert abs(claims - 0.1 * 600) < 4 * math.sqrt(600 * 0.1 * 0.9)


def test_one_pair_tells_nothing():
    found = paired_difference([60.0], [62.5])
    assert (found.mean, found.count, found.too_few) == (2.5, 1, True)
    assert all(map(math.isnan, (found.low, found.high, found.p_value, found.detectable)))
    assert found.verdict == (
        "Too few to tell: +2.5 in 1 pair, which tells nothing of the spread; run at least 3 seeds."
    )


def test_two_pairs_are_too_few_however_clear_they_look():
    found = paired_difference([60.0, 61.0], [70.0, 71.001])
    assert found.low > 0
    assert found.p_value < 0.05
    assert found.too_few
    assert found.verdict.startswith("Too few to tell: +10 over 2 pairs (95 % interval ")


# All differences equal, once written in numbers that rounding makes unequal.
@pytest.mark.parametrize(
    ("baseline", "values", "mean"),
    [([1.0, 2.0, 4.0], [3.0, 4.0, 6.0], 2.0), ([0.1, 0.2, 0.7], [0.2, 0.3, 0.8], 0.1)],
)
def test_equal_differences_have_no_width_and_are_not_trusted(baseline, values, mean):
    found = paired_difference(baseline, values)
    assert found.mean == pytest.approx(mean, abs=1e-15)
    assert found.low == found.high == found.mean
    assert (found.p_value, found.detectable, found.too_few) == (0, 0, False)
    assert found.verdict == (
        f"No spread to judge by: +{mean:g} in each of 3 pairs; the seeds change nothing, so look "
        "whether the runs really differ."
    )
    two = paired_difference(baseline[:2], values[:2])
    assert two.too_few
    assert two.verdict.startswith(f"Too few to tell: +{mean:g} in each of 2 pairs")


@pytest.mark.parametrize("values", [[1.0, 2.0, 4.0], [0.0, 0.0, 0.0], [0.3, 0.3, 0.6]])
def test_no_difference_at_all_has_the_p_value_one(values):
    rounded = [0.1 + 0.2 if value == 0.3 else value for value in values]
    found = paired_difference(values, rounded)
    assert (found.mean, found.low, found.high, found.p_value) == (0, 0, 0, 1)
    assert not found.too_few
    assert found.verdict.startswith("No spread to judge by: no difference in any of 3 pairs")
    assert paired_difference(values[:2], rounded[:2]).too_few


def test_small_true_differences_are_not_taken_for_rounding():
    baseline = np.array([60.0, 61.0, 62.0])
    found = paired_difference(baseline, baseline + np.array([1e-12, 2e-12, 3e-12]))
    assert 0 < found.p_value < 0.1


@pytest.mark.parametrize(
    ("baseline", "values", "level", "error", "words"),
    [
        ([1.0, 2.0], [1.0], 0.95, ValueError, "same seeds. Received: 2 of the baseline, 1 of"),
        ([], [], 0.95, ValueError, "`baseline` must hold at least one number"),
        ([1.0], [math.nan], 0.95, ValueError, "`other` must be finite; a model that has diverged"),
        ([math.inf], [1.0], 0.95, ValueError, "`baseline` must be finite"),
        ([1.0], [[1.0]], 0.95, ValueError, "`other` must be a row of numbers"),
        (["1"], [1.0], 0.95, TypeError, "`baseline` must hold real numbers"),
        ([1.0, 2.0], [1.0, 3.0], 95, ValueError, "level=95"),
        ([1e308], [-1e308], 0.95, ValueError, "more than a float64 holds.*up to 1e\\+308"),
    ],
)
def test_what_cannot_be_compared_is_refused_with_a_sentence(baseline, values, level, error, words):
    with pytest.raises(error, match=words):
        paired_difference(baseline, values, level)
