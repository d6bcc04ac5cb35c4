"""What cannot be: ceilings by brute force, and models that must not pass them."""

import numpy as np
import pytest

from keras_tupe.models import TupeBackbone, TupeMaskedLM
from training.studies.probe.ceilings import ceiling, kind_of
from training.studies.probe.rows import ProbeRows
from training.studies.probe.tasks import TASKS

TRAINED, LENGTH = 24, 48
KINDS = {
    "none": "nowhere",
    "absolute": "trained",
    "tupe_a": "trained",
    "tupe_r": "everywhere",
    "alibi": "everywhere",
}


def small_model(position, max_sequence_length=LENGTH, vocabulary_size=80):
    backbone = TupeBackbone(
        *(vocabulary_size, 1, 2, 8, 16),
        position=position,
        max_sequence_length=max_sequence_length,
        normalize_first=True,
        initializer_range=0.5,
    )
    return TupeMaskedLM(backbone)


def logits_of(model):
    def call(ids):
        everywhere = np.tile(np.arange(ids.shape[1], dtype="int32"), (len(ids), 1))
        inputs = {"padding_mask": np.ones_like(ids), "mask_positions": everywhere}
        return np.asarray(model({"token_ids": ids, **inputs}))

    return call


def rows_of_all_tasks():
    rows = ProbeRows(list(TASKS), TRAINED, 8, 1, 0)
    return {(name, n): rows.test(name, n, 4, 4) for name in TASKS for n in (TRAINED, LENGTH)}


@pytest.fixture(scope="module", name="tests")
def tests_of_all_tasks():
    return rows_of_all_tasks()


def best_blind(rows, seen):
    """The best share of right answers of any function of what a method knows, by brute force."""
    groups = {}
    for row, position, label in zip(rows.rows, rows.positions, rows.labels, strict=True):
        tokens = rows.token_ids[row].tolist()
        own = ("at", position) if position < seen else ("token", tokens[position])
        known = (tuple(tokens[:seen]), tuple(sorted(tokens[seen:])), own)
        groups.setdefault(known, []).append(label)
    right = sum(max(labels.count(label) for label in labels) for labels in groups.values())
    return right / len(rows.labels)


def test_ceilings_are_the_best_that_a_function_of_what_is_known_can_do(tests):
    for (_, length), rows in tests.items():
        assert ceiling(rows, "everywhere", TRAINED) == 1
        for kind, seen in (("nowhere", 0), ("trained", TRAINED)):
            assert ceiling(rows, kind, TRAINED) == pytest.approx(best_blind(rows, seen), abs=1e-12)
        assert ceiling(rows, "nowhere", TRAINED) <= ceiling(rows, "trained", TRAINED)
        if length == TRAINED:
            assert ceiling(rows, "trained", TRAINED) == 1


def test_what_methods_can_by_construction(tests):
    """Only the majority needs no order; a table knows the positions of training."""
    for kind, known in (("nowhere", {"majority"}), ("trained", {"majority", "absolute_position"})):
        can = {name for name in TASKS if ceiling(tests[name, LENGTH], kind, TRAINED) == 1}
        assert can == known
    assert {n for n in TASKS if ceiling(tests[n, TRAINED], "nowhere", TRAINED) == 1} == {"majority"}


@pytest.mark.parametrize("position", KINDS)
def test_how_a_method_knows_order_is_measured(position, tests):
    model = small_model(position)
    before = [weight.numpy() for weight in model.weights]
    ids = tests["reversed_copy", LENGTH].token_ids[:2]
    assert kind_of(model, logits_of(model), ids, TRAINED) == KINDS[position]
    for weight, value in zip(model.weights, before, strict=True):
        np.testing.assert_array_equal(weight.numpy(), value)


def best_of_states(model, rows):
    """The best share of right answers that anything can read from hidden states."""
    ids = rows.token_ids
    states = model.backbone({"token_ids": ids, "padding_mask": np.ones_like(ids)})
    states = np.asarray(states["sequence_output"])[rows.rows, rows.positions]
    assert np.abs(states).max() > 0.1
    groups = {}
    for state, label in zip(states.round(3) + 0.0, rows.labels, strict=True):
        groups.setdefault(state.tobytes(), []).append(label)
    return sum(max(map(labels.count, labels)) for labels in groups.values()) / len(rows.labels)


def test_hidden_states_without_positions_tell_as_much_as_the_ceiling_and_with_positions_more(tests):
    blind, seeing = small_model("none"), small_model("absolute")
    for (name, length), rows in tests.items():
        most = ceiling(rows, "nowhere", TRAINED)
        # a few states are cut apart by rounding, which can only tell more
        assert most <= best_of_states(blind, rows) <= most + 0.03, (name, length)
        assert best_of_states(seeing, rows) > most + 0.1 or name == "majority", (name, length)


def test_without_positions_permuted_tokens_have_permuted_answers(tests):
    model = small_model("none")
    rows = tests["first_of_two", TRAINED]
    order = np.concatenate([[0, 1, 2], 3 + np.random.default_rng(0).permutation(TRAINED - 3)])
    logits = logits_of(model)(rows.token_ids)
    np.testing.assert_allclose(
        logits_of(model)(rows.token_ids[:, order]), logits[:, order], atol=1e-5
    )
