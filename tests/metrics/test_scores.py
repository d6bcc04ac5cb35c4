"""Scores of classes and numbers against scikit-learn and SciPy, by hand, and what they refuse."""

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn import metrics as peer

from keras_tupe.metrics import accuracy, f1, matthews, pearson, spearman

CLASSES = (accuracy, f1, matthews)
PEERS = {pearson: scipy.stats.pearsonr, spearman: scipy.stats.spearmanr}
# Examples of class 0 and 1 in GLUE's development sets.
COUNTS = {"cola": (322, 721), "mrpc": (129, 279), "rte": (146, 131), "sst2": (428, 444)}


# scikit-learn, when labels and predictions are all of one class
@pytest.mark.filterwarnings("ignore:A single label was found:UserWarning")
@settings(max_examples=150)
@given(
    st.integers(2, 6).flatmap(
        lambda classes: st.lists(
            st.tuples(*[st.integers(0, classes - 1)] * 2), min_size=1, max_size=40
        )
    ),
    st.sampled_from([1, -6, -13, 3]),  # most have a class 1
)
def test_classes_score_as_in_scikit_learn_whatever_their_ids(pairs, shift):
    labels, predictions = 7 * np.array(pairs).T + shift
    assert accuracy(labels, predictions) == peer.accuracy_score(labels, predictions)
    theirs = peer.f1_score(labels, predictions, labels=[1], average="macro", zero_division=0)
    assert f1(labels, predictions) == pytest.approx(theirs, abs=1e-14)
    theirs = peer.matthews_corrcoef(labels, predictions)
    assert matthews(labels, predictions) == pytest.approx(theirs, abs=1e-12)


def test_the_three_scores_of_a_table_worked_out_by_hand():
    # 3 right positives, 1 false one, 2 missed, 4 right negatives
    labels = [1] * 3 + [0] + [1] * 2 + [0] * 4
    predictions = [1] * 4 + [0] * 6
    assert accuracy(labels, predictions) == 0.7
    assert f1(labels, predictions) == 6 / 9
    expected = (3 * 4 - 1 * 2) / math.sqrt(4 * 5 * 5 * 6)
    assert matthews(labels, predictions) == pytest.approx(expected, abs=1e-15)
    many = np.tile([labels, predictions], 100_000)  # the fourth power of n is above 64 bits
    assert matthews(*many) == pytest.approx(expected, abs=1e-14)
    for kind in ("int32", "uint8", "float32"):
        for score in CLASSES:
            found = score(np.array(labels, kind), np.array(predictions, kind))
            assert (found, type(found)) == (score(labels, predictions), float)


@pytest.mark.parametrize("task", COUNTS)
def test_a_constant_class_gets_its_share_and_no_correlation(task):
    no, yes = COUNTS[task]
    labels = np.repeat([0, 1], [no, yes])
    for constant, count in ((0, no), (1, yes)):
        said = np.full(len(labels), constant)
        assert accuracy(labels, said) == count / len(labels)
        assert matthews(labels, said) == matthews(said, labels) == 0
    share = yes / len(labels)
    assert f1(labels, np.ones(len(labels))) == pytest.approx(2 * share / (1 + share), abs=1e-15)
    assert f1(labels, np.zeros(len(labels))) == f1(np.zeros(3), np.zeros(3)) == 0
    assert [score(labels, labels) for score in CLASSES] == pytest.approx([1] * 3, abs=1e-15)
    assert [score(labels, 1 - labels) for score in CLASSES] == pytest.approx([0, 0, -1], abs=1e-15)


@pytest.mark.parametrize("score", PEERS)
@pytest.mark.parametrize("count", [3, 4, 17, 1500])
@pytest.mark.parametrize("noise", [0.0, 0.3, 30.0])
def test_random_numbers_correlate_as_in_scipy(score, count, noise):
    rng = np.random.default_rng(count)
    labels = rng.uniform(0, 5, count)
    predictions = -2 * labels + noise * rng.normal(size=count) + 11
    theirs = PEERS[score](labels, predictions).statistic
    assert score(labels, predictions) == pytest.approx(theirs, abs=1e-12)
    labels, predictions = (1000 + np.array([labels, predictions])).astype("float32")
    theirs = PEERS[score](labels.astype("float64"), predictions.astype("float64")).statistic
    assert score(labels, predictions) == pytest.approx(theirs, abs=1e-12)  # sums in float64


@settings(max_examples=100)
@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 4)), min_size=2, max_size=30))
def test_numbers_with_many_ties_correlate_as_in_scipy(pairs):
    labels, predictions = np.array(pairs).T
    assume(np.ptp(labels) and np.ptp(predictions))
    for score, theirs in PEERS.items():
        expected = theirs(labels, predictions).statistic
        assert score(labels, predictions) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("score", PEERS)
@pytest.mark.parametrize("constant", [0.0, 2.5, 0.1, 1e-320, -1e300])
def test_predictions_that_are_all_equal_have_no_correlation(score, constant):
    labels = np.random.default_rng(0).uniform(0, 5, 10)
    assert score(labels, np.full(10, constant)) == score(np.full(10, constant), labels) == 0
    assert score(np.full(10, constant), np.full(10, constant)) == 0


@pytest.mark.parametrize("scale", [1e-310, 1e-200, 1e200, 3e307])
def test_very_small_and_large_numbers_neither_vanish_nor_overflow(scale):
    labels, predictions = np.random.default_rng(0).normal(size=(2, 20)) / 3
    tolerance = 1e-6 if scale < 1e-300 else 1e-12  # subnormal numbers have few digits
    for score in PEERS:
        found = score(labels, predictions * scale)
        assert found == pytest.approx(score(labels, predictions), abs=tolerance)


@pytest.mark.parametrize("score", [*CLASSES, *PEERS])
@pytest.mark.parametrize(
    ("labels", "predictions", "error", "words"),
    [
        ([], [], ValueError, "`labels` must be a row of .* hold at least .*Received: labels of sh"),
        ([1, 0], [1, 0, 1], ValueError, "one prediction for each label. Received: 2 labels, 3 pr"),
        ([1, 0], [[1, 0]], ValueError, "`predictions` must be a row.*shape \\(1, 2\\)"),
        (1, 1, ValueError, "`labels` must be a row of numbers.*shape \\(\\)"),
        ([1, 0], [np.nan, 0], ValueError, "`predictions` must be finite.*1 values that are NaN"),
        ([1, np.inf], [0, 0], ValueError, "`labels` must be finite"),
        (["1", "0"], [1, 0], TypeError, "`labels` must hold real numbers. Received: .*dtype <U1"),
        ([1, 0], [1, None], TypeError, "`predictions` must hold real numbers.*object"),
        ([1j, 0], [1, 0], TypeError, "`labels` must hold real numbers.*complex128"),
    ],
)
def test_what_cannot_be_scored_is_refused_with_a_sentence(score, labels, predictions, error, words):
    with pytest.raises(error, match=words):
        score(labels, predictions)


def test_what_are_no_classes_and_too_few_numbers_are_refused():
    for score in CLASSES:
        with pytest.raises(ValueError, match=r"take the argmax.*predictions with the entry 0\.5"):
            score([1, 0], [0.5, 0.5])
        with pytest.raises(ValueError, match=r"take the argmax.*labels with the entry -1\.5"):
            score([-1.5, 0], [0, 0])
    for score in PEERS:
        with pytest.raises(ValueError, match=r"at least 2\. Received: labels of shape \(1,\)"):
            score([1.0], [1.0])
