"""What is not finite changes nothing; and stops that are asked for."""

import keras
import numpy as np
import pytest
from keras import ops
from trainer_cases import (
    assert_same_state,
    compiled,
    fit,
    linear_model,
    linear_rows,
    rows_with_a_bad_one,
    state_of,
)

from keras_tupe.trainer import NonFiniteError


@pytest.mark.parametrize("micro_batches", [1, 2])
def test_a_bad_step_stops_the_training_and_changes_nothing(micro_batches):
    inputs, targets = rows_with_a_bad_one(step=2)
    trainer = compiled(linear_model(), micro_batches=micro_batches)
    before = compiled(linear_model(), micro_batches=micro_batches)
    fit(before, inputs[:8], targets[:8])
    with pytest.raises(NonFiniteError, match="not finite at step 2.") as error:
        fit(trainer, inputs, targets)
    assert (error.value.step, error.value.skipped_steps) == (2, 1)
    for mine, other in zip(state_of(trainer).values(), state_of(before).values(), strict=True):
        np.testing.assert_array_equal(mine, other)


def test_a_gradient_that_is_not_finite_is_a_bad_step_too():
    inputs, targets = linear_rows(8)
    # the root's slope at 0 is infinite, its value is not
    trainer = compiled(linear_model(), loss=lambda y, outputs: ops.sqrt(ops.abs(y * 0 * outputs)))
    before = state_of(trainer)
    with pytest.raises(NonFiniteError, match="not finite at step 0"):
        fit(trainer, inputs, targets)
    assert_same_state(state_of(trainer), before)


def test_an_infinite_loss_with_a_finite_gradient_is_a_bad_step_too():
    inputs, targets = linear_rows(8)
    targets[3] = np.inf
    trainer = compiled(linear_model(), loss="mae")  # whose slope is 1 or -1
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
    for mine, other in zip(state_of(trainer).values(), state_of(clean).values(), strict=True):
        np.testing.assert_array_equal(mine, other)
    np.testing.assert_allclose(history["loss"], expected["loss"], rtol=1e-6)


def test_one_bad_step_more_than_tolerated_stops():
    inputs, targets = rows_with_a_bad_one(step=1)
    targets[13] = np.inf
    trainer = compiled(linear_model(), skip_bad_steps=1)
    with pytest.raises(NonFiniteError, match="Received: 2 bad steps") as error:
        fit(trainer, inputs, targets)
    assert error.value.step == 3


def test_after_an_error_the_trainer_can_go_on_with_better_data():
    inputs, targets = rows_with_a_bad_one(step=0)
    trainer = compiled(linear_model())
    with pytest.raises(NonFiniteError):
        fit(trainer, inputs, targets)
    fit(trainer, inputs[4:], targets[4:])
    assert (trainer.step, trainer.skipped_steps) == (5, 1)


def test_a_callback_ends_fit_and_the_next_fit_trains():
    inputs, targets = linear_rows(40)
    trainer = compiled(linear_model())

    class Stop(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            if batch == 2:
                self.model.stop_training = True

    fit(trainer, inputs, targets, callbacks=[Stop()], epochs=3)
    assert trainer.step == 3
    stopped_at = trainer.step
    fit(trainer, inputs, targets)
    assert trainer.step == stopped_at + 10


def test_the_end_of_data_of_unknown_length_is_no_step(tensorflow):
    inputs, targets = linear_rows(28)

    def batches():
        for start in range(0, 28, 4):
            yield inputs[start : start + 4], targets[start : start + 4]

    shapes = tensorflow.TensorSpec((4, 5)), tensorflow.TensorSpec((4, 1))
    data = tensorflow.data.Dataset.from_generator(batches, output_signature=shapes)
    trainer = compiled(linear_model())

    trainer.fit(data.repeat(2), verbose=0)
    assert trainer.step == int(trainer.optimizer.iterations) == 14
