"""Accuracy, F1 and Matthews' correlation against scikit-learn, and what they refuse."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as peer

from keras_tupe.metrics import accuracy, f1, matthews

# scikit-learn, when labels and predictions are all of one class
SAYS_SO = pytest.mark.filterwarnings("ignore:A single label was found:UserWarning")
BINARY = (accuracy, f1, matthews)


def rows(classes):
    """Labels and predictions of up to 40 examples; short and one-sided ones come often."""
    ids = st.integers(0, classes - 1)
    return st.lists(st.tuples(ids, ids), min_size=1, max_size=40)


@SAYS_SO
@settings(max_examples=100)
@given(rows(2))
def test_two_classes_score_as_in_scikit_learn(pairs):
    labels, predictions = np.array(pairs).T
    assert accuracy(labels, predictions) == peer.accuracy_score(labels, predictions)
    for positive in (0, 1):
        theirs = peer.f1_score(
            labels, predictions, labels=[positive], average="macro", zero_division=0
        )
        assert f1(labels, predictions, positive) == pytest.approx(theirs, abs=1e-14)
    theirs = peer.matthews_corrcoef(labels, predictions)
    assert matthews(labels, predictions) == pytest.approx(theirs, abs=1e-12)


@SAYS_SO
@settings(max_examples=60)
@given(st.integers(3, 6).flatmap(rows), st.integers(-3, 90))
def test_more_classes_score_as_in_scikit_learn_whatever_their_ids(pairs, shift):
    labels, predictions = 7 * np.array(pairs).T + shift
    assert accuracy(labels, predictions) == peer.accuracy_score(labels, predictions)
    theirs = peer.matthews_corrcoef(labels, predictions)
    assert matthews(labels, predictions) == pytest.approx(theirs, abs=1e-12)


def test_the_three_scores_of_a_table_worked_out_by_hand():
    # 3 right positives, 1 false one, 2 missed, 4 right negatives
    labels = [1] * 3 + [0] + [1] * 2 + [0] * 4
    predictions = [1] * 4 + [0] * 6
    assert accuracy(labels, predictions) == 0.7
    assert f1(labels, predictions) == 6 / 9
    assert f1(labels, predictions, positive=0) == 8 / 11
    expected = (3 * 4 - 1 * 2) / math.sqrt(4 * 5 * 5 * 6)
    assert matthews(labels, predictions) == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("score", BINARY)
@pytest.mark.parametrize("kind", [list, "int32", "int64", "uint8", "float32", bool])
def test_the_kind_of_the_ids_does_not_matter(score, kind):
    labels, predictions = [1, 0, 1, 1, 0, 0, 1], [1, 0, 0, 1, 1, 0, 1]
    given_as = kind if kind is list else lambda ids: np.array(ids, kind)
    assert score(given_as(labels), given_as(predictions)) == score(labels, predictions)
    assert type(score(given_as(labels), given_as(predictions))) is float


def test_perfect_and_reversed_predictions_reach_the_ends_exactly():
    rng = np.random.default_rng(0)
    for count in (2, 3, 7, 100, 1043):
        labels = np.r_[0, 1, rng.integers(0, 2, count - 2)]
        assert [score(labels, labels) for score in BINARY] == [1, 1, 1]
        assert [score(labels, 1 - labels) for score in BINARY] == [0, 0, -1]


def test_matthews_of_many_examples_does_not_overflow():
    labels = np.tile(np.array([0, 1, 1, 0], "int32"), 300_000)
    predictions = np.tile(np.array([0, 1, 0, 0], "int32"), 300_000)
    expected = (1 * 2 - 0 * 1) / math.sqrt(1 * 2 * 2 * 3)
    assert matthews(labels, predictions) == pytest.approx(expected, abs=1e-14)


@pytest.mark.parametrize("score", BINARY)
@pytest.mark.parametrize(
    ("labels", "predictions", "error", "words"),
    [
        ([], [], ValueError, "`labels` must hold at least one number. Received: labels of shape"),
        ([1, 0], [1], ValueError, "one prediction for each label. Received: 2 labels, 1 pred"),
        ([1, 0], [[1, 0]], ValueError, "`predictions` must be a row.*shape \\(1, 2\\)"),
        (1, 1, ValueError, "`labels` must be a row of numbers.*shape \\(\\)"),
        ([1, 0], [0.5, 0.5], ValueError, "take the argmax.*predictions with the entry 0.5"),
        ([-1.5, 0], [0, 0], ValueError, "take the argmax.*labels with the entry -1.5"),
        ([1, 0], [np.nan, 0], ValueError, "`predictions` must be finite.*1 values that are NaN"),
        ([1, np.inf], [0, 0], ValueError, "`labels` must be finite"),
        ([[1, 0], [1]], [1, 0], ValueError, "`labels` must be a row of numbers. Received"),
        (["1", "0"], [1, 0], TypeError, "`labels` must hold real numbers. Received: .*dtype <U1"),
        ([1, 0], [1, None], TypeError, "`predictions` must hold real numbers.*object"),
        ([1j, 0], [1, 0], TypeError, "`labels` must hold real numbers.*complex128"),
    ],
)
def test_what_cannot_be_scored_is_refused_with_a_sentence(score, labels, predictions, error, words):
    with pytest.raises(error, match=words):
        score(labels, predictions)


@pytest.mark.parametrize("positive", [1.0, "1", None])
def test_a_positive_class_that_is_no_integer_is_refused(positive):
    with pytest.raises(TypeError, match="`positive` must be a class id.*Received: positive="):
        f1([1, 0], [1, 0], positive)
