"""What is not finite changes nothing; and stops that are asked for."""

import keras
import numpy as np
import pytest
from keras import ops
from trainer_cases import (
    OPTIMIZERS,
    assert_same_state,
    compiled,
    fit,
    linear_model,
    linear_rows,
    rows_with_a_bad_one,
    state_of,
)

from keras_tupe.trainer import NonFiniteError


@pytest.mark.parametrize(
    ("name", "micro_batches"), [("momentum", 1), ("momentum", 2), ("adamw", 1), ("nadam", 1)]
)
def test_a_bad_step_stops_the_training_and_changes_nothing(name, micro_batches):
    inputs, targets = rows_with_a_bad_one(step=2)
    trainer, before = (
        compiled(linear_model(), OPTIMIZERS[name], micro_batches=micro_batches) for _ in range(2)
    )
    fit(before, inputs[:8], targets[:8])
    with pytest.raises(NonFiniteError, match="not finite at step 2.") as error:
        fit(trainer, inputs, targets)
    assert (error.value.step, error.value.skipped_steps) == (2, 1)
    assert (trainer.step, trainer.skipped_steps) == (3, 1)
    assert_same_state(state_of(trainer), state_of(before))
    fit(trainer, inputs[12:], targets[12:])  # with better data it can go on
    assert (trainer.step, trainer.skipped_steps) == (5, 1)


@pytest.mark.parametrize(
    ("loss", "target"),
    [
        # the root's slope at 0 is infinite, its value is not
        (lambda y, outputs: ops.sqrt(ops.abs(y * 0 * outputs)), 1.0),
        ("mae", np.inf),  # whose slope is 1 or -1
    ],
)
def test_a_loss_or_a_gradient_that_alone_is_not_finite_is_a_bad_step_too(loss, target):
    inputs, targets = linear_rows(8)
    targets[3] = target
    trainer = compiled(linear_model(), loss=loss)
    before = state_of(trainer)
    with pytest.raises(NonFiniteError, match="not finite at step 0"):
        fit(trainer, inputs, targets)
    assert_same_state(state_of(trainer), before)


def test_tolerated_bad_steps_leave_no_trace_but_their_count():
    inputs, targets = rows_with_a_bad_one(step=2)
    trainer = compiled(linear_model(), skip_bad_steps=1)
    history = fit(trainer, inputs, targets)
    assert (trainer.step, trainer.skipped_steps) == (5, 1)
    good = [i for i in range(20) if i // 4 != 2]
    clean = compiled(linear_model())
    expected = fit(clean, inputs[good], targets[good])
    assert_same_state(state_of(trainer), state_of(clean))
    np.testing.assert_allclose(history["loss"], expected["loss"], rtol=1e-6)


def test_one_bad_step_more_than_tolerated_stops():
    inputs, targets = rows_with_a_bad_one(step=1)
    targets[13] = np.inf
    trainer = compiled(linear_model(), skip_bad_steps=1)
    with pytest.raises(NonFiniteError, match="Received: 2 bad steps") as error:
        fit(trainer, inputs, targets)
    assert error.value.step == 3


def test_a_callback_ends_fit_and_the_next_fit_trains():
    inputs, targets = linear_rows(40)
    trainer = compiled(linear_model())

    class Stop(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            if batch == 2:
                self.model.stop_training = True

    fit(trainer, inputs, targets, callbacks=[Stop()], epochs=3)
    assert trainer.step == 3
    fit(trainer, inputs, targets)
    assert trainer.step == 3 + 10
