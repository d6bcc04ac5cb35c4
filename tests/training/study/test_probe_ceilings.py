"""What cannot be: ceilings by brute force, and models that must not pass them."""

import itertools

import numpy as np
import pytest

from keras_tupe.models import TupeBackbone, TupeMaskedLM
from training.studies.probe.ceilings import ceiling
from training.studies.probe.order import kind_of, tables_of
from training.studies.probe.rows import AskedRows, ProbeRows
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


def test_rows_of_a_table_that_training_never_had_tell_no_order_on_average():
    """Over all orders of these rows the mean score is bounded exactly; one order may be lucky."""
    trained, length = 3, 6
    orders = [[*range(trained), *order] for order in itertools.permutations(range(3, 6))]
    ids = np.array([1, 2, 3, 10, 11, 12], "int32")[np.array(orders)]
    rows = AskedRows(ids, np.arange(6), np.zeros(6, int), ids[:, trained].astype(int))
    model = small_model("absolute", length)
    (table,) = tables_of(model)
    value, found = table.numpy(), []
    for order in orders:
        table.assign(value[order])
        states = model.backbone({"token_ids": ids, "padding_mask": np.ones_like(ids)})
        found.append(np.asarray(states["sequence_output"])[:, 0])
    found = np.stack(found) - np.mean(found, axis=(0, 1))  # so that answers differ
    most = ceiling(rows, "trained", trained)
    assert most == 1 / 3
    best, rng = 0, np.random.default_rng(0)
    for _ in range(50):  # whatever is made of the hidden states
        answers = 10 + (found @ rng.normal(size=(8, 3))).argmax(axis=-1)
        scores = (answers == rows.labels).mean(axis=1)
        assert scores.mean() <= most + 1e-12
        best = max(best, scores.max())
    assert best > 0.6  # so that the bound of the mean is no matter of course
