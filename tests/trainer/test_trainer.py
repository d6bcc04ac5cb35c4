"""What the trainer promises on one device; `test_exactness.py` has several."""

import keras
import numpy as np
import pytest
from keras import ops
from trainer_cases import (
    States,
    assert_same_state,
    linear_model,
    linear_rows,
    mask_trainer,
    masks_of,
    state_of,
)

from keras_tupe import TupeBackbone, TupeMaskedLM
from keras_tupe.layers import Dropout
from keras_tupe.trainer import LinearWarmupDecay, NonFiniteError, Trainer, adamw


def compiled(model, optimizer=None, loss="mse", metrics=None, steps_per_execution=1, **kwargs):
    trainer = Trainer(model, **kwargs)
    optimizer = optimizer or keras.optimizers.SGD(0.1, momentum=0.9)
    trainer.compile(optimizer, loss, metrics=metrics, steps_per_execution=steps_per_execution)
    return trainer


def fit(trainer, inputs, targets, batch_size=4, **kwargs):
    return trainer.fit(
        inputs, targets, batch_size=batch_size, shuffle=False, verbose=0, **kwargs
    ).history


# === Steps ===


@pytest.mark.parametrize("micro_batches", [1, 4])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_step_follows_the_gradient_of_the_whole_batch(micro_batches, weighted):
    inputs, targets = linear_rows(8)
    weights = np.arange(8, dtype="float32") if weighted else None
    model = linear_model()
    (kernel, bias) = model.get_weights()
    loss = keras.losses.MeanSquaredError(reduction="mean_with_sample_weight")
    optimizer = keras.optimizers.SGD(0.25, global_clipnorm=0.5)
    trainer = compiled(model, optimizer, loss, micro_batches=micro_batches)
    logs = fit(trainer, inputs, targets, 8, sample_weight=weights)
    # the same in NumPy
    share = np.ones(8) / 8 if weights is None else weights / weights.sum()
    errors = (inputs @ kernel + bias - targets)[:, 0]
    by_kernel = inputs.T @ (2 * share * errors)
    by_bias = (2 * share * errors).sum()
    norm = np.sqrt((by_kernel**2).sum() + by_bias**2)
    assert norm > 1.0, "nothing is clipped"
    np.testing.assert_allclose(logs["loss"], (share * errors**2).sum(), rtol=1e-6)
    np.testing.assert_allclose(trainer.last_step["gradient_norm"], norm, rtol=1e-6)
    new_kernel, new_bias = model.get_weights()
    np.testing.assert_allclose(new_kernel[:, 0], kernel[:, 0] - 0.125 * by_kernel / norm, rtol=1e-5)
    np.testing.assert_allclose(new_bias, bias - 0.125 * by_bias / norm, rtol=1e-5)


@pytest.mark.parametrize("optimizer", ["adamw", "lion"])
def test_one_device_trains_as_plain_fit_does(optimizer):
    inputs, targets = linear_rows(20)
    runs = []
    for exact in (True, False):
        model = linear_model()
        made = keras.optimizers.get({"class_name": optimizer, "config": {"learning_rate": 0.1}})
        made.weight_decay, made.global_clipnorm = 0.1, 0.5
        if exact:
            runner = compiled(model, made)
        else:
            model.compile(made, "mse", jit_compile=False)
            runner = model
        losses = fit(runner, inputs, targets, epochs=1)["loss"]
        runs.append((losses, model.get_weights()))
    (losses, weights), (plain_losses, plain_weights) = runs
    np.testing.assert_allclose(losses, plain_losses, rtol=1e-6)
    for mine, plain in zip(weights, plain_weights, strict=True):
        np.testing.assert_allclose(mine, plain, rtol=1e-6)


def test_adamw_in_the_trainer_decays_what_it_should_at_the_scheduled_rate():
    model = TupeMaskedLM(TupeBackbone(23, 1, 2, 6, 11, dropout=0.0, max_sequence_length=5))
    schedule = LinearWarmupDecay(0.4, total_steps=8, warmup_steps=2)
    trainer = Trainer(model, train_metrics=False, xla=False)
    trainer.compile(adamw(schedule, weight_decay=0.5))
    for variable in model.trainable_variables:
        variable.assign(np.full(variable.shape, 2.0))
    ids = np.zeros((3, 5), "int32")
    inputs = {"token_ids": ids, "padding_mask": ids + 1, "mask_positions": ids[:, :2]}
    weights = np.zeros((3, 2), "float32")  # no masked token, no gradient: decay alone
    for step in range(3):
        trainer.train_on_batch(inputs, ids[:, :2], weights)
        rate = 0.4 * min((step + 2) / 2, (7 - step) / 6)
        np.testing.assert_allclose(float(trainer.optimizer.learning_rate), rate, rtol=1e-6)
    decayed = 2.0 * np.prod([1 - 0.5 * rate for rate in (0.2, 0.4, 0.4)])
    for variable in model.trainable_variables:
        if "pooled_dense" in variable.path:  # no part of masked language modeling
            continue
        kept = variable.path.endswith(("/bias", "/output_bias", "/gamma", "/beta"))
        np.testing.assert_allclose(
            ops.convert_to_numpy(variable),
            2.0 if kept else decayed,
            rtol=1e-6,
            err_msg=variable.path,
        )


# === Dropout ===


@pytest.mark.parametrize("layer", [keras.layers.Dropout, Dropout])
def test_every_step_and_every_micro_batch_draws_another_mask(layer):
    masks = masks_of(mask_trainer(layer, micro_batches=2), num_steps=3)
    assert 0.4 < masks.mean() < 0.6
    rows = masks.reshape(-1, masks.shape[-1])
    assert len(np.unique(rows, axis=0)) == len(rows) == 24


def restore(trainer, other):
    for name, variable in other.state_variables.items():
        trainer.state_variables[name].assign(ops.convert_to_numpy(variable))


def test_a_resumed_run_draws_the_masks_and_gets_the_weights_of_the_unkilled_one():
    whole, killed = mask_trainer(), mask_trainer()
    keras.utils.set_random_seed(99)
    resumed = mask_trainer()  # with other seeds, until they are restored
    restore(killed, whole)
    expected = masks_of(whole, 5)
    first = masks_of(killed, 2)
    assert not np.array_equal(masks_of(resumed, 2), first), "the same seeds by chance"
    restore(resumed, killed)
    assert resumed.step == 2
    np.testing.assert_array_equal(np.concatenate([first, masks_of(resumed, 3)]), expected)
    assert resumed.step == 5
    assert_same_state(state_of(resumed), state_of(whole))


def test_evaluation_draws_no_masks_and_counts_no_steps():
    trainer = mask_trainer()
    (gains,) = trainer.model.trainable_variables
    gains.assign(np.ones(gains.shape))
    inputs = np.ones((4, *gains.shape), "float32")
    assert trainer.evaluate(inputs, np.zeros(4), verbose=0) == gains.shape[0]
    np.testing.assert_array_equal(trainer.predict(inputs, verbose=0), float(gains.shape[0]))
    assert trainer.step == 0


# === Losses and metrics ===


@pytest.mark.parametrize("train_metrics", [True, False])
@pytest.mark.parametrize("micro_batches", [1, 2])
def test_losses_and_metrics_are_those_of_all_tokens(train_metrics, micro_batches):
    random = np.random.default_rng(3)
    inputs = random.normal(size=(12, 3, 4)).astype("float32")
    targets = random.integers(0, 5, (12, 3), "int32")
    weights = (np.arange(3) < random.integers(0, 4, (12, 1))).astype("float32")
    model = keras.Sequential([keras.Input((3, 4)), keras.layers.Dense(5)])
    trainer = Trainer(model, train_metrics=train_metrics, micro_batches=micro_batches)
    trainer.compile(
        keras.optimizers.SGD(0.0),
        keras.losses.SparseCategoricalCrossentropy(True, reduction="mean_with_sample_weight"),
        weighted_metrics=["sparse_categorical_accuracy"],
    )
    kernel, bias = model.get_weights()
    logits = (inputs @ kernel + bias).astype("float64")
    losses = (
        np.log(np.exp(logits).sum(-1)) - np.take_along_axis(logits, targets[..., None], -1)[..., 0]
    )
    loss = (losses * weights).sum() / weights.sum()
    accuracy = ((logits.argmax(-1) == targets) * weights).sum() / weights.sum()
    history = fit(trainer, inputs, targets, sample_weight=weights)
    np.testing.assert_allclose(history["loss"], loss, rtol=1e-6)
    trained = history["sparse_categorical_accuracy"][0]
    np.testing.assert_allclose(trained, accuracy if train_metrics else 0.0, rtol=1e-6)
    data = {"x": inputs, "y": targets, "sample_weight": weights}
    # the last batch has 2 rows
    found = trainer.evaluate(**data, batch_size=5, verbose=0, return_dict=True)
    np.testing.assert_allclose(found["loss"], loss, rtol=1e-6)
    np.testing.assert_allclose(found["sparse_categorical_accuracy"], accuracy, rtol=1e-6)
    np.testing.assert_allclose(
        trainer.predict(inputs, batch_size=5, verbose=0), logits, rtol=1e-4, atol=1e-5
    )


def test_class_weights_count_as_in_keras():
    inputs, _ = linear_rows(8)
    labels = np.arange(8) % 3
    runs = []
    for exact in (True, False):
        keras.utils.set_random_seed(1)
        model = keras.Sequential([keras.Input((5,)), keras.layers.Dense(3)])
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        runner = model
        if exact:
            runner = compiled(model, keras.optimizers.SGD(0.5), loss, micro_batches=2)
        else:
            model.compile(keras.optimizers.SGD(0.5), loss)
        history = fit(runner, inputs, labels, class_weight={0: 1.0, 1: 3.0, 2: 0.5})
        runs.append([np.array(history["loss"]), *model.get_weights()])
    for mine, theirs in zip(*runs, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-7)


def test_weights_may_have_an_axis_of_one_as_in_keras():
    inputs, targets = linear_rows(8)
    weights = np.arange(8, dtype="float32")
    losses = []
    for shape in ((8,), (8, 1)):
        trainer = compiled(linear_model())
        losses += fit(trainer, inputs, targets, 8, sample_weight=weights.reshape(shape))["loss"]
    assert losses[0] == losses[1]


def test_a_loss_function_compares_targets_and_outputs_row_by_row():
    inputs, targets = linear_rows(8)
    losses = []
    for given in (targets, targets[:, 0]):
        trainer = compiled(linear_model(), loss=lambda y, outputs: ops.square(y - outputs))
        losses += fit(trainer, inputs, given, 8)["loss"]
    assert losses[0] == pytest.approx(losses[1], rel=1e-6)


# === Faults ===


def rows_with_a_bad_one(step, batch_size=4, num_rows=20):
    inputs, targets = linear_rows(num_rows)
    targets[step * batch_size + 1] = np.nan
    return inputs, targets


@pytest.mark.parametrize("micro_batches", [1, 2])
@pytest.mark.parametrize("steps_per_execution", [1, 5])
def test_a_bad_step_stops_the_training_and_changes_nothing(micro_batches, steps_per_execution):
    inputs, targets = rows_with_a_bad_one(step=2)
    trainer = compiled(
        linear_model(), micro_batches=micro_batches, steps_per_execution=steps_per_execution
    )
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


@pytest.mark.parametrize("steps_per_execution", [1, 5])
def test_tolerated_bad_steps_leave_no_trace_but_their_count(steps_per_execution):
    inputs, targets = rows_with_a_bad_one(step=2)
    trainer = compiled(linear_model(), skip_bad_steps=1, steps_per_execution=steps_per_execution)
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


def test_a_short_last_call_of_several_steps_is_seen():
    inputs, targets = linear_rows(28)
    trainer = compiled(linear_model(), steps_per_execution=5)
    states = States(trainer)
    history = fit(trainer, inputs, targets, callbacks=[states])
    assert trainer.step == 7
    assert len(states.states) == 3
    assert_same_state(states.states[-1], state_of(trainer))
    single = compiled(linear_model())
    assert fit(single, inputs, targets)["loss"] == pytest.approx(history["loss"], rel=1e-6)
    bad_inputs, bad_targets = rows_with_a_bad_one(step=6, num_rows=28)
    with pytest.raises(NonFiniteError, match="at step 13"):
        fit(trainer, bad_inputs, bad_targets)


def test_request_stop_ends_fit_and_the_next_fit_trains():
    inputs, targets = linear_rows(40)
    trainer = compiled(linear_model())

    class Stop(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            if batch == 2:
                trainer.request_stop()

    fit(trainer, inputs, targets, callbacks=[Stop()], epochs=3)
    assert trainer.stop_requested
    assert trainer.step in (3, 4)
    stopped_at = trainer.step
    fit(trainer, inputs, targets)
    assert trainer.step == stopped_at + 10


def test_a_stop_may_be_requested_while_the_step_is_traced():
    trainers = []

    def loss(targets, outputs):
        trainers[0].request_stop()
        return ops.square(targets - outputs)

    trainers.append(compiled(linear_model(), loss=loss))
    fit(trainers[0], *linear_rows(40))
    assert trainers[0].step == 1


def test_a_stop_that_was_requested_before_fit_ends_it_after_one_step():
    trainer = compiled(linear_model())
    trainer.request_stop()
    fit(trainer, *linear_rows(40))
    assert trainer.step == 1
    fit(trainer, *linear_rows(40))
    assert trainer.step == 11


@pytest.mark.parametrize("steps_per_execution", [1, 5])
@pytest.mark.parametrize("xla", [False, "auto"])
def test_the_end_of_data_of_unknown_length_is_no_step(tensorflow, steps_per_execution, xla):
    inputs, targets = linear_rows(28)

    def batches():
        for start in range(0, 28, 4):
            yield inputs[start : start + 4], targets[start : start + 4]

    shapes = tensorflow.TensorSpec((4, 5)), tensorflow.TensorSpec((4, 1))
    data = tensorflow.data.Dataset.from_generator(batches, output_signature=shapes)
    trainer = compiled(linear_model(), xla=xla, steps_per_execution=steps_per_execution)

    class NeverMore(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            assert trainer.step <= 14, "it would never end"

    with pytest.warns(UserWarning, match="ran out of data"):
        trainer.fit(data.repeat(2), verbose=0, callbacks=[NeverMore()])
    assert trainer.step == int(trainer.optimizer.iterations) == 14


# === Half precision ===


@pytest.mark.parametrize("wrapped", [False, True])
def test_float16_overflows_lower_the_scale_and_are_no_bad_steps(wrapped):
    inputs, _ = linear_rows(80)
    targets = inputs.sum(axis=-1, keepdims=True)
    optimizer = keras.optimizers.SGD(0.05)
    if wrapped:
        optimizer = keras.optimizers.LossScaleOptimizer(optimizer)
    trainer = compiled(linear_model(dtype="mixed_float16"), optimizer)
    trainer._loss_scale.assign(2.0**22)
    losses = fit(trainer, inputs, targets, epochs=6)["loss"]
    overflows = 120 - int(trainer.optimizer.iterations)
    assert (trainer.step, trainer.skipped_steps) == (120, 0)
    assert overflows >= 1
    assert float(trainer._loss_scale.numpy()) == 2.0 ** (22 - overflows)
    assert losses[-1] < 0.05 * losses[0]


def test_the_loss_scale_doubles_after_2000_good_steps():
    trainer = compiled(linear_model(dtype="mixed_float16"))
    trainer._good_steps.assign(1998)
    inputs, targets = linear_rows(12)
    fit(trainer, inputs[:4], targets[:4])
    scale = float(trainer._loss_scale.numpy())
    fit(trainer, inputs[4:8], targets[4:8])
    assert float(trainer._loss_scale.numpy()) == 2 * scale
    assert int(trainer._good_steps.numpy()) == 0


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
        trainer = compiled(model, keras.optimizers.SGD(0.02))
        outputs = trainer.predict(inputs, verbose=0).astype("float32")
        loss = trainer.evaluate(inputs, targets, verbose=0)
        # on JAX predictions are rounded where evaluation rounds nothing
        tolerance = 1e-6 if keras.backend.backend() == "tensorflow" else 1e-3
        np.testing.assert_allclose(loss, ((outputs - targets) ** 2).mean(), rtol=tolerance)
        fit(trainer, inputs, targets)
        updates.append(np.concatenate([w.ravel() for w in model.get_weights()]) - before)
    exact, rounded = updates
    assert 0 < np.linalg.norm(rounded - exact) < 0.05 * np.linalg.norm(exact)
