"""Learning rates, and the trainer's update: the optimizer's own, which copies no weight."""

import keras
import numpy as np
import pytest
from trainer_cases import OPTIMIZERS, compiled, fit, linear_model, linear_rows, state_of

from keras_tupe.trainer import InverseSquareRoot, LinearWarmupDecay, adamw

DEFAULT = ("adamw", "nadam", "momentum")  # the others take two seconds each
NAMES = [
    name if name in DEFAULT else pytest.param(name, marks=pytest.mark.slow) for name in OPTIMIZERS
]


@pytest.mark.parametrize("name", NAMES)
def test_the_update_is_that_of_keras_for_every_optimizer(name):
    inputs, targets = linear_rows(20)
    models = [linear_model() for _ in range(2)]
    start = np.concatenate([w.ravel() for w in models[0].get_weights()])
    models[0].compile(OPTIMIZERS[name](), "mse", jit_compile=False)
    for start_row in range(0, 20, 4):
        rows = slice(start_row, start_row + 4)
        models[0].train_on_batch(inputs[rows], targets[rows])
    trainer = compiled(models[1], OPTIMIZERS[name])
    fit(trainer, inputs, targets)
    expected, got = (np.concatenate([w.ravel() for w in m.get_weights()]) for m in models)
    assert np.linalg.norm(expected - start) > 1e-3
    assert np.linalg.norm(got - expected) < 1e-6 * np.linalg.norm(expected - start)
    assert int(trainer.optimizer.iterations) == 5


def test_weights_with_constraints_obey_them():
    layer = keras.layers.Dense(1, kernel_constraint=keras.constraints.MaxNorm(0.1))
    trainer = compiled(keras.Sequential([keras.Input((5,)), layer]), lambda: adamw(0.1))
    fit(trainer, *linear_rows(8))
    assert np.linalg.norm(keras.ops.convert_to_numpy(layer.kernel)) <= 0.1001


def addresses(tensorflow, trainer):
    """Returns where the values of all weights and moments begin in memory."""
    found = {}
    for name, variable in trainer.state_variables.items():
        if not name.startswith("trainer/") and len(variable.shape) > 0:
            value = tensorflow.experimental.dlpack.to_dlpack(variable.value.read_value())
            array = tensorflow.experimental.dlpack.from_dlpack(value)
            found[name] = np.from_dlpack(array).__array_interface__["data"][0]
    return found


def test_adamw_changes_weights_and_moments_where_they_are(tensorflow):
    inputs, targets = linear_rows(12)
    trainer = compiled(linear_model(), lambda: adamw(0.1))
    fit(trainer, inputs[:4], targets[:4])  # initial values may be shared
    before, values = addresses(tensorflow, trainer), state_of(trainer)
    assert len(before) == 6
    fit(trainer, inputs[4:], targets[4:])
    assert addresses(tensorflow, trainer) == before
    now = state_of(trainer)
    assert not any(np.array_equal(now[name], values[name]) for name in before)


# === Learning rates ===


def test_learning_rate_rises_to_the_peak_and_falls_to_zero():
    schedule = LinearWarmupDecay(3.0, total_steps=12, warmup_steps=4)
    rates = [float(schedule(step)) for step in range(14)]
    rising, falling = [0.75, 1.5, 2.25, 3.0], [3.0 * left / 8 for left in range(8, 0, -1)]
    np.testing.assert_allclose(rates, [*rising, *falling, 0.0, 0.0], rtol=1e-6)
    again = LinearWarmupDecay.from_config(schedule.get_config())
    assert [float(again(step)) for step in range(14)] == rates
    assert float(LinearWarmupDecay(2.0, total_steps=5)(0)) == 2.0  # without warm-up


def test_the_inverse_square_root_is_that_of_the_original_transformer():
    width, warmup = 512, 4000
    schedule = InverseSquareRoot((width * warmup) ** -0.5, warmup)
    again = InverseSquareRoot.from_config(schedule.get_config())
    for step in (1, 2, 1000, 3999, 4000, 4001, 16_000, 100_000):
        expected = width**-0.5 * min(step**-0.5, step * warmup**-1.5)  # eq. 3, from 1
        np.testing.assert_allclose(float(schedule(step - 1)), expected, rtol=1e-6)
        assert float(again(step - 1)) == float(schedule(step - 1))
