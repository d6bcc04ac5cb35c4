"""Runs of a grid share one compiled step, and none of them feels the others."""

import keras
import numpy as np
import pytest

from keras_tupe import TupeBackbone, TupeTextClassifier
from keras_tupe.data import Padded
from keras_tupe.trainer import LinearWarmupDecay, NonFiniteError
from training.finetune.engine import FineTuner, Recipe
from training.finetune.kept_trainer import SettableWarmupDecay, run_key

RANDOM = np.random.default_rng(1)
TOKENS = [RANDOM.integers(5, 40, RANDOM.integers(2, 30)) for _ in range(40)]
CLASSES = np.array([row[0] % 2 for row in TOKENS], "int32")
FIRST = Recipe(2e-2, epochs=2, batch_size=16, warmup_share=0.5, seed=5)
SECOND = Recipe(1e-2, epochs=3, batch_size=16, warmup_share=0.0, seed=6)


def make(num_classes=2, dropout=0.1):
    backbone = TupeBackbone(40, 1, 2, 16, 32, dropout=dropout, name="backbone")
    return TupeTextClassifier(backbone, num_classes, dropout=dropout)


def rows(seed=0):
    return Padded({"token_ids": TOKENS}, CLASSES, pad_id=0, batch_size=16, seed=seed)


def run(tuner, recipe, folder):
    """Returns predictions and the log, without times."""
    model = tuner.fit(make, rows(recipe.seed), recipe, folder)
    lines = (folder / "log.csv").read_text().splitlines()
    return np.stack(tuner.predict(model, rows())), [line.split(",")[:4] for line in lines]


# the quick one is that of a lost run in test_finetune_glue
@pytest.mark.slow
def test_a_run_is_the_same_to_the_bit_whatever_ran_before(tmp_path):
    alone, log = run(FineTuner(xla="off"), SECOND, tmp_path / "alone")
    tuner = FineTuner(xla="off")
    other, _ = run(tuner, FIRST, tmp_path / "first")
    kept = tuner._kept
    again, again_log = run(tuner, SECOND, tmp_path / "second")
    assert tuner._kept is kept
    np.testing.assert_array_equal(again, alone)
    assert again_log == log
    assert not np.array_equal(other, alone)
    # a run that fails leaves nothing behind either
    with pytest.raises(NonFiniteError):
        run(tuner, Recipe(1e30, epochs=3, batch_size=16, clip_norm=1.0), tmp_path / "failed")
    again, again_log = run(tuner, SECOND, tmp_path / "third")
    assert tuner._kept is kept
    np.testing.assert_array_equal(again, alone)
    assert again_log == log


def test_runs_that_compute_something_else_do_not_share():
    loss = keras.losses.SparseCategoricalCrossentropy(reduction="mean_with_sample_weight")
    key = run_key(make(), loss, {"weight_decay": 0.01})
    assert key == run_key(make(), loss, {"weight_decay": 0.01})
    assert key != run_key(make(3), loss, {"weight_decay": 0.01})
    assert key != run_key(make(dropout=0.2), loss, {"weight_decay": 0.01})
    assert key != run_key(make(), loss, {"weight_decay": 0.1})
    other = keras.losses.MeanSquaredError(reduction="mean_with_sample_weight")
    assert key != run_key(make(), other, {"weight_decay": 0.01})


@pytest.mark.parametrize(("total", "warmup"), [(1, 0), (10, 0), (10, 1), (10, 9), (100, 6)])
def test_the_rate_is_that_of_linear_warmup_and_decay(total, warmup):
    expected = LinearWarmupDecay(3e-5, total, warmup)
    schedule = SettableWarmupDecay()
    for number, value in zip(schedule.numbers, (3e-5, total, warmup), strict=True):
        number.assign(value)
    steps = range(total + 2)
    np.testing.assert_allclose(
        [float(schedule(step)) for step in steps],
        [float(expected(step)) for step in steps],
        rtol=1e-6,
    )
