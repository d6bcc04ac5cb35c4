"""What those score who know nothing: a constant answer, guesses, random labels."""

import types

import numpy as np
import pytest

from keras_tupe.metrics import accuracy, f1, matthews, pearson, spearman, squad_scores

# Examples of class 0 and 1 in GLUE's development sets, and the larger class's percentage.
COUNTS = {
    "cola": (322, 721, 69.13),
    "mrpc": (129, 279, 68.38),
    "rte": (146, 131, 52.71),
    "sst2": (428, 444, 50.92),
}


@pytest.mark.parametrize("task", COUNTS)
def test_a_constant_class_gets_its_share_and_no_correlation(task):
    no, yes, largest = COUNTS[task]
    labels = np.repeat([0, 1], [no, yes])
    for constant, count in ((0, no), (1, yes)):
        said = np.full(len(labels), constant)
        assert accuracy(labels, said) == count / len(labels)
        assert matthews(labels, said) == 0
    share = yes / len(labels)
    assert f1(labels, np.ones(len(labels))) == pytest.approx(2 * share / (1 + share), abs=1e-15)
    assert f1(labels, np.zeros(len(labels))) == 0
    assert f1(np.zeros(3), np.zeros(3)) == 0
    most = int(yes > no)
    assert 100 * accuracy(labels, np.full(len(labels), most)) == pytest.approx(largest, abs=0.005)


def test_the_f1_of_saying_paraphrase_on_mrpc_is_the_known_one():
    labels = np.repeat([0, 1], COUNTS["mrpc"][:2])
    assert 100 * f1(labels, np.ones(408)) == pytest.approx(81.22, abs=0.005)


def test_predictions_of_random_labels_score_as_chance_does():
    rng = np.random.default_rng(0)
    count, runs = 1043, 400
    found = np.zeros((runs, 5))
    for run in range(runs):
        labels = rng.random(count) < 721 / count
        said = rng.random(count) < 0.5
        scores, guesses = rng.uniform(0, 5, (2, count))
        found[run] = (
            *(accuracy(labels, said), f1(labels, said), matthews(labels, said)),
            *(pearson(scores, guesses), spearman(scores, guesses)),
        )
    share = 721 / count
    chance = [0.5, share / (share + 0.5), 0, 0, 0]
    spread = found.std(axis=0)
    assert (abs(found.mean(axis=0) - chance) < 4 * spread / np.sqrt(runs)).all()
    # A correlation of independent numbers spreads by 1 / sqrt(n - 1).
    np.testing.assert_allclose(spread[2:] * np.sqrt(count - 1), 1, atol=0.15)


def test_an_empty_answer_to_every_question_scores_nothing():
    questions = [
        types.SimpleNamespace(id=name, answers=((text, 0),))
        for name, text in (("a", "the cat"), ("b", "1,234"), ("c", "\u65e5\u672c"))
    ]
    found = squad_scores(questions, dict.fromkeys("abc", ""))
    assert (found.exact_match, found.f1) == (0, 0)
    said = squad_scores(questions, dict.fromkeys("abc", "The cat!"))
    assert (said.exact_match, said.f1) == (pytest.approx(100 / 3), pytest.approx(100 / 3))
