"""Loss scaling and half precision."""

import keras
import numpy as np
import pytest
from keras import ops
from trainer_cases import compiled, fit, linear_model, linear_rows, rows_with_a_bad_one

from keras_tupe.trainer import NonFiniteError
from keras_tupe.trainer.training_state import read_state, write_state


@pytest.mark.parametrize("wrapped", [False, True])
def test_float16_overflows_lower_the_scale_and_are_no_bad_steps(wrapped):
    inputs, _ = linear_rows(80)
    targets = inputs.sum(axis=-1, keepdims=True)

    def optimizer():
        plain = keras.optimizers.SGD(0.05)
        return keras.optimizers.LossScaleOptimizer(plain) if wrapped else plain

    trainer = compiled(linear_model(dtype="mixed_float16"), optimizer)
    trainer.counters["loss_scale"].assign(2.0**22)
    losses = fit(trainer, inputs, targets, epochs=6)["loss"]
    overflows = 120 - int(ops.convert_to_numpy(trainer.optimizer.iterations))
    assert (trainer.step, trainer.skipped_steps) == (120, 0)
    assert 1 <= overflows < 16, "the scale fell further than float16 asks for"
    assert float(trainer.counters["loss_scale"].numpy()) == 2.0 ** (22 - overflows)
    assert losses[-1] < 0.05 * losses[0]


def test_the_loss_scale_doubles_after_2000_good_steps():
    trainer = compiled(linear_model(dtype="mixed_float16"))
    trainer.counters["good_steps"].assign(1998)
    inputs, targets = linear_rows(12)
    fit(trainer, inputs[:4], targets[:4])
    scale = float(trainer.counters["loss_scale"].numpy())
    fit(trainer, inputs[4:8], targets[4:8])
    assert float(trainer.counters["loss_scale"].numpy()) == 2 * scale
    assert int(trainer.counters["good_steps"].numpy()) == 0


def test_the_count_of_good_steps_is_a_part_of_the_state():
    """A run that goes on doubles the scale when one that was never stopped does."""
    trainer = compiled(linear_model(dtype="mixed_float16"))
    trainer.counters["good_steps"].assign(1999)
    state = read_state(trainer)
    trainer.counters["good_steps"].assign(0)
    write_state(trainer, state)
    scale = float(trainer.counters["loss_scale"].numpy())
    fit(trainer, *linear_rows(4))
    assert float(trainer.counters["loss_scale"].numpy()) == 2 * scale


def test_a_bad_row_in_float16_is_a_bad_step_not_an_overflow():
    inputs, targets = rows_with_a_bad_one(step=1)
    trainer = compiled(linear_model(dtype="mixed_float16"))
    with pytest.raises(NonFiniteError, match="at step 1"):
        fit(trainer, inputs, targets)


def test_bfloat16_trains_close_to_float32_with_the_loss_in_float32():
    inputs, _ = linear_rows(80)
    targets = inputs.sum(axis=-1, keepdims=True)
    updates = []
    for dtype in ("float32", "mixed_bfloat16"):
        model = linear_model(dtype=dtype)
        before = np.concatenate([w.ravel() for w in model.get_weights()])
        trainer = compiled(model, lambda: keras.optimizers.SGD(0.02))
        outputs = model.predict(inputs, verbose=0).astype("float32")
        loss = trainer.evaluate(inputs, targets)["loss"]
        # on JAX predictions are rounded where evaluation rounds nothing
        tolerance = 1e-6 if keras.backend.backend() == "tensorflow" else 1e-3
        np.testing.assert_allclose(loss, ((outputs - targets) ** 2).mean(), rtol=tolerance)
        fit(trainer, inputs, targets)
        updates.append(np.concatenate([w.ravel() for w in model.get_weights()]) - before)
    exact, rounded = updates
    assert 0 < np.linalg.norm(rounded - exact) < 0.05 * np.linalg.norm(exact)
