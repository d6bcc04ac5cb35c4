"""`xla="auto"` measures both ways where that pays, and changes nothing by it."""

import itertools
import types

import keras
import numpy as np
import pytest
from trainer_cases import compiled, linear_model, linear_rows, state_of

STEPS = 6


@pytest.fixture
def choice(tensorflow, monkeypatch):
    """The module, in which every run is long enough to be measured."""
    from keras_tupe.trainer import _xla_choice

    monkeypatch.setattr(_xla_choice, "PAYS_SECONDS", 0.0)
    monkeypatch.setattr(_xla_choice, "_MEASURE_SECONDS", 0.0)
    return _xla_choice


def dropout_model():
    keras.utils.set_random_seed(3)
    layers = [keras.layers.Dropout(0.5), keras.layers.Dense(1, name="dense")]
    return keras.Sequential([keras.Input((5,)), *layers])


def batches(tensorflow, seen=None):
    def note(row, target):
        if seen is not None:
            tensorflow.py_function(lambda x: seen.append(float(x[0, 0])), [row], [])
        return row, target

    data = tensorflow.data.Dataset.from_tensor_slices(linear_rows(4 * STEPS))
    data = data.shuffle(4 * STEPS, seed=1).batch(4, drop_remainder=True)
    return data.map(note).apply(tensorflow.data.experimental.assert_cardinality(STEPS))


@pytest.mark.parametrize(("xla_is_faster", "group"), [(True, 1), (False, 4)])
def test_measuring_changes_no_weight_no_mask_and_no_order(
    tensorflow, choice, monkeypatch, xla_is_faster, group
):
    seconds = itertools.cycle([2.0, 1.0] if xla_is_faster else [1.0, 2.0])
    measure = choice.XlaChoice.seconds

    def measured(self, data, steps):
        measure(self, data, steps)
        return next(seconds), next(seconds)

    monkeypatch.setattr(choice.XlaChoice, "seconds", measured)
    trainers = [
        compiled(dropout_model(), xla=xla, steps_per_execution=group)
        for xla in ("auto", xla_is_faster)
    ]
    orders = [[], []]
    for trainer, order in zip(trainers, orders, strict=True):
        history = trainer.fit(batches(tensorflow, order), epochs=2, verbose=0).history
        assert np.isfinite(history["loss"]).all()
        assert trainer.step == 2 * STEPS
    auto, other = trainers
    assert auto.compiles_passes is other.compiles_passes is xla_is_faster
    assert auto.pass_seconds
    assert not other.pass_seconds
    assert orders[0] == orders[1]
    for mine, others in zip(state_of(auto).values(), state_of(other).values(), strict=True):
        np.testing.assert_array_equal(mine, others)


def test_the_faster_way_is_taken_as_the_clock_says(tensorflow, choice, monkeypatch):
    for plain, compiled_seconds, expected in ((1.0, 0.9, True), (1.0, 0.97, False)):
        trainer = compiled(linear_model(), planned_steps=10)
        found = (plain, compiled_seconds)
        monkeypatch.setattr(choice.XlaChoice, "seconds", lambda self, data, steps, f=found: f)
        trainer.fit(batches(tensorflow), verbose=0)
        assert trainer.compiles_passes is expected
        assert trainer.pass_seconds == found


@pytest.mark.filterwarnings("ignore:Your input ran out of data")
@pytest.mark.parametrize("reason", ["short", "shapes", "unknown", "off"])
def test_nothing_is_compiled_to_be_measured_where_it_cannot_pay(
    tensorflow, choice, monkeypatch, reason
):
    data, settings = batches(tensorflow), {}
    if reason == "short":
        monkeypatch.setattr(choice, "PAYS_SECONDS", 1e9)
        monkeypatch.setattr(choice, "_FLOPS_PER_SECOND", 0.0)  # which would not even time it
    elif reason == "shapes":
        data = tensorflow.data.Dataset.from_tensor_slices(linear_rows(10)).batch(4)
    elif reason == "unknown":
        data = data.filter(lambda *_: True)
    else:
        settings = {"xla": False}
    made = []
    function = tensorflow.function

    def noted(*args, jit_compile=None, **kwargs):
        result = function(*args, jit_compile=jit_compile, **kwargs)
        if jit_compile:
            made.append(result)
        return result

    monkeypatch.setattr(tensorflow, "function", noted)
    trainer = compiled(linear_model(), **settings)
    trainer.fit(data, verbose=0)
    assert trainer.compiles_passes is False
    assert len(trainer.pass_seconds) == (reason == "short")
    assert not any(one.experimental_get_tracing_count() for one in made)


def test_planned_steps_must_be_a_number_of_steps():
    with pytest.raises(ValueError, match="`planned_steps` must be a positive integer"):
        compiled(linear_model(), planned_steps=0)


def test_a_run_that_is_short_by_its_operations_is_not_timed(tensorflow, choice, monkeypatch):
    monkeypatch.setattr(choice, "PAYS_SECONDS", 1.0)
    monkeypatch.setattr(choice.XlaChoice, "seconds", lambda *args: (1.0, 2.0))
    for rate, timed in ((1e15, 0), (1e-3, 2)):
        monkeypatch.setattr(choice, "_FLOPS_PER_SECOND", rate)
        trainer = compiled(linear_model(), planned_steps=10)
        trainer.fit(batches(tensorflow), verbose=0)
        assert len(trainer.pass_seconds) == timed


@pytest.mark.parametrize(
    ("rows", "parts", "expected", "small"),
    [(16, 1, 4, 48), (7, 1, 1, 0), (2, 1, 1, 0), (24, 4, 4, 0), (16, 1, 16, 49)],
)
def test_the_first_quarter_of_the_rows_is_measured_and_stands_for_all(
    tensorflow, choice, monkeypatch, rows, parts, expected, small
):
    monkeypatch.setattr(choice, "_SMALL", small)
    seen = []

    def passes(data):
        inputs, targets, weights = data
        seen.append((inputs["ids"].shape[0], targets.shape[0], weights))
        return [targets, None]

    data = ({"ids": tensorflow.ones((rows, 3))}, tensorflow.ones((rows,)), None)
    found = choice.XlaChoice(tensorflow.distribute.get_strategy(), passes, passes, parts)
    times = iter([9.0, 9.0, 9.0, 9.0, *3 * [1.0, 2.0]])
    measure = found._seconds
    monkeypatch.setattr(found, "_seconds", lambda *args: measure(*args) and next(times))
    assert found.seconds(data, steps=1) == (rows / expected, 2 * rows / expected)
    assert set(seen) == {(expected, expected, None)}


def test_rows_that_cannot_be_cut_are_refused_before_they_are_measured(tensorflow, choice):
    trainer = compiled(linear_model(), micro_batches=8)
    with pytest.raises(ValueError, match="must be a multiple of micro_batches=8"):
        trainer.fit(batches(tensorflow), verbose=0)


@pytest.mark.filterwarnings("ignore:Your input ran out of data")
def test_a_measured_run_makes_one_graph_of_a_step_and_ends_with_its_data(
    tensorflow, choice, monkeypatch
):
    monkeypatch.setattr(choice.XlaChoice, "seconds", lambda *args: (1.0, 2.0))
    trainer, traced = compiled(linear_model(), planned_steps=20), []
    step = trainer.train_step

    def noted(data):
        traced.append(data)
        return step(data)

    monkeypatch.setattr(trainer, "train_step", noted)
    for fits in (1, 2):
        trainer.fit(batches(tensorflow).filter(lambda *_: True), verbose=0)
        assert trainer.step == fits * STEPS
    assert len(traced) == 1


def test_a_run_is_judged_by_its_tokens_not_by_its_masked_slots(tensorflow, choice, monkeypatch):
    trainer = compiled(linear_model(), planned_steps=10)
    trainer._steps_ahead = 10
    shapes = {"mask_positions": (8, 2), "token_ids": (8, 100)}
    spec = {name: tensorflow.TensorSpec(shape, "int32") for name, shape in shapes.items()}
    iterator = types.SimpleNamespace(element_spec=spec)
    operations = 6 * trainer.model.count_params() * 800 * 10
    assert operations
    monkeypatch.setattr(choice, "PAYS_SECONDS", 1.0)
    monkeypatch.setattr(choice, "_FLOPS_PER_SECOND", operations)
    assert trainer._may_pay(iterator)
    monkeypatch.setattr(choice, "_FLOPS_PER_SECOND", 1.01 * operations)
    assert not trainer._may_pay(iterator)
