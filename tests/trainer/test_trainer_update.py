"""The trainer's update is the optimizer's own, and on TensorFlow it copies no weight."""

import keras
import numpy as np
import pytest
from trainer_cases import compiled, fit, linear_model, linear_rows, rows_with_a_bad_one, state_of

from keras_tupe.trainer import LinearWarmupDecay, NonFiniteError, adamw

OPTIMIZERS = {
    "adamw": lambda: adamw(0.1, clip_norm=0.5),
    "adamw_schedule": lambda: adamw(LinearWarmupDecay(0.1, 6, 2), decay_all=True, clip_norm=None),
    "adam": lambda: keras.optimizers.Adam(0.1, weight_decay=0.1, clipnorm=0.5),
    "amsgrad": lambda: keras.optimizers.Adam(0.1, amsgrad=True, clipvalue=0.1),
    "nadam": lambda: keras.optimizers.Nadam(0.1, global_clipnorm=0.5),
    "momentum": lambda: keras.optimizers.SGD(0.1, momentum=0.9, nesterov=True, weight_decay=0.1),
    "rmsprop": lambda: keras.optimizers.RMSprop(0.1, centered=True),
    "lion": lambda: keras.optimizers.Lion(0.01, weight_decay=0.1),
    "lamb": lambda: keras.optimizers.Lamb(0.1),
    "adafactor": lambda: keras.optimizers.Adafactor(0.1),
    "ftrl": lambda: keras.optimizers.Ftrl(0.1),
}

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
    trainer = compiled(models[1], OPTIMIZERS[name]())
    fit(trainer, inputs, targets)
    expected, got = (np.concatenate([w.ravel() for w in m.get_weights()]) for m in models)
    assert np.linalg.norm(expected - start) > 1e-3
    assert np.linalg.norm(got - expected) < 1e-6 * np.linalg.norm(expected - start)
    assert int(trainer.optimizer.iterations) == 5


def test_weights_with_constraints_obey_them():
    layer = keras.layers.Dense(1, kernel_constraint=keras.constraints.MaxNorm(0.1))
    trainer = compiled(keras.Sequential([keras.Input((5,)), layer]), adamw(0.1))
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
    trainer = compiled(linear_model(), adamw(0.1))
    fit(trainer, inputs[:4], targets[:4])  # initial values may be shared
    before, values = addresses(tensorflow, trainer), state_of(trainer)
    assert len(before) == 6
    fit(trainer, inputs[4:], targets[4:])
    assert addresses(tensorflow, trainer) == before
    now = state_of(trainer)
    assert not any(np.array_equal(now[name], values[name]) for name in before)


@pytest.mark.parametrize("name", ["adamw", "momentum", "nadam"])
def test_a_bad_step_changes_nothing_but_counters(name):
    inputs, targets = rows_with_a_bad_one(step=1, num_rows=8)
    trainer = compiled(linear_model(), OPTIMIZERS[name]())
    fit(trainer, inputs[:4], targets[:4])
    before = state_of(trainer)
    with pytest.raises(NonFiniteError):
        fit(trainer, inputs[4:], targets[4:])
    for key, value in state_of(trainer).items():
        np.testing.assert_array_equal(value, before[key], err_msg=key)
    assert (trainer.step, trainer.skipped_steps) == (2, 1)
