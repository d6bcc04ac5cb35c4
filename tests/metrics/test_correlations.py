"""Pearson's and Spearman's correlation against SciPy, and what they refuse."""

import numpy as np
import pytest
import scipy.stats
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from keras_tupe.metrics import pearson, spearman

BOTH = (pearson, spearman)
PEERS = {pearson: scipy.stats.pearsonr, spearman: scipy.stats.spearmanr}


@pytest.mark.parametrize("score", BOTH)
@pytest.mark.parametrize("count", [3, 4, 17, 1500])
@pytest.mark.parametrize("noise", [0.0, 0.3, 30.0])
def test_random_numbers_correlate_as_in_scipy(score, count, noise):
    rng = np.random.default_rng(count)
    labels = rng.uniform(0, 5, count)
    predictions = -2 * labels + noise * rng.normal(size=count) + 11
    theirs = PEERS[score](labels, predictions).statistic
    assert score(labels, predictions) == pytest.approx(theirs, abs=1e-12)


@settings(max_examples=100)
@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 4)), min_size=2, max_size=30))
def test_numbers_with_many_ties_correlate_as_in_scipy(pairs):
    labels, predictions = np.array(pairs).T
    assume(np.ptp(labels) and np.ptp(predictions))
    for score in BOTH:
        theirs = PEERS[score](labels, predictions).statistic
        assert score(labels, predictions) == pytest.approx(theirs, abs=1e-12)


def test_spearman_sees_only_the_order_and_pearson_only_the_line():
    labels = np.array([0.5, 1, 2, 3.5, 5])
    assert spearman(labels, np.exp(labels)) == pytest.approx(1, abs=1e-15)
    assert spearman(labels, -(labels**3)) == pytest.approx(-1, abs=1e-15)
    assert 0.8 < pearson(labels, np.exp(labels)) < 0.95
    assert pearson(labels, 1e6 - labels / 1e3) == pytest.approx(-1, abs=1e-9)


def test_ties_share_their_mean_rank():
    # ranks 1, 2.5, 2.5, 4 and 3, 1, 3, 3, less the mean 2.5
    first, second = [-1.5, 0, 0, 1.5], [0.5, -1.5, 0.5, 0.5]
    expected = np.dot(first, second) / np.sqrt(np.dot(first, first) * np.dot(second, second))
    assert spearman([10, 20, 20, 30], [9, 1, 9, 9]) == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("score", BOTH)
@pytest.mark.parametrize("constant", [0.0, 2.5, 0.1, 1e-320, -1e300])
def test_predictions_that_are_all_equal_have_no_correlation(score, constant):
    labels = np.random.default_rng(0).uniform(0, 5, 10)
    assert score(labels, np.full(10, constant)) == 0
    assert score(np.full(10, constant), labels) == 0
    assert score(np.full(10, constant), np.full(10, constant)) == 0


@pytest.mark.parametrize("scale", [1e-310, 1e-200, 1e200, 3e307])
def test_very_small_and_large_numbers_neither_vanish_nor_overflow(scale):
    rng = np.random.default_rng(0)
    labels, predictions = rng.normal(size=(2, 20))
    tolerance = 1e-6 if scale < 1e-300 else 1e-12  # subnormal numbers have few digits
    for score in BOTH:
        found = score(labels, predictions * scale)
        assert found == pytest.approx(score(labels, predictions), abs=tolerance)
        assert score(predictions * scale, labels) == pytest.approx(found, abs=1e-15)


def test_float32_numbers_are_summed_in_float64():
    rng = np.random.default_rng(0)
    labels, predictions = (1000 + rng.normal(size=(2, 5000))).astype("float32")
    theirs = scipy.stats.pearsonr(labels.astype("float64"), predictions.astype("float64"))
    assert pearson(labels, predictions) == pytest.approx(theirs.statistic, abs=1e-12)
    assert type(pearson(labels, predictions)) is float


@pytest.mark.parametrize("score", BOTH)
@pytest.mark.parametrize(
    ("labels", "predictions", "error", "words"),
    [
        ([], [], ValueError, "`labels` must hold at least 2 numbers. Received: labels of shape"),
        ([1.0], [1.0], ValueError, "`labels` must hold at least 2 numbers"),
        ([1, 2, 3], [1, 2], ValueError, "one prediction for each label. Received: 3 labels, 2"),
        ([1, 2], [[1], [2]], ValueError, "`predictions` must be a row.*shape \\(2, 1\\)"),
        ([1, 2], [np.nan, np.inf], ValueError, "`predictions` must be finite.*2 values"),
        ([1, -np.inf], [1, 2], ValueError, "`labels` must be finite"),
        ([1, 2], ["1", "2"], TypeError, "`predictions` must hold real numbers"),
    ],
)
def test_what_cannot_be_correlated_is_refused_with_a_sentence(
    score, labels, predictions, error, words
):
    with pytest.raises(error, match=words):
        score(labels, predictions)
