"""What the trainer promises on one device; `test_exactness.py` has several."""

import keras
import numpy as np
import pytest
from keras import ops
from trainer_cases import compiled, fit, linear_model, linear_rows

from keras_tupe import TupeBackbone, TupeMaskedLM
from keras_tupe.trainer import LinearWarmupDecay, Trainer, adamw


@pytest.mark.parametrize("micro_batches", [1, 4])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_step_follows_the_gradient_of_the_whole_batch(micro_batches, weighted):
    inputs, targets = linear_rows(8)
    weights = np.arange(8, dtype="float32") if weighted else None
    model = linear_model(kernel_regularizer=keras.regularizers.L2(0.3))
    (kernel, bias) = model.get_weights()
    loss = keras.losses.MeanSquaredError(reduction="mean_with_sample_weight")
    trainer = compiled(
        model,
        lambda: keras.optimizers.SGD(0.25, global_clipnorm=0.5),
        loss,
        micro_batches=micro_batches,
    )
    logs = fit(trainer, inputs, targets, 8, sample_weight=weights)
    # the same in NumPy
    share = np.ones(8) / 8 if weights is None else weights / weights.sum()
    errors = (inputs @ kernel + bias - targets)[:, 0]
    by_kernel = inputs.T @ (2 * share * errors) + 0.6 * kernel[:, 0]
    by_bias = (2 * share * errors).sum()
    norm = np.sqrt((by_kernel**2).sum() + by_bias**2)
    assert norm > 1.0, "nothing is clipped"
    mean, penalty = (share * errors**2).sum(), 0.3 * (kernel**2).sum()
    np.testing.assert_allclose(logs["loss"], mean + penalty, rtol=1e-6)
    np.testing.assert_allclose(trainer.last_step["gradient_norm"], norm, rtol=1e-6)
    new_kernel, new_bias = model.get_weights()
    np.testing.assert_allclose(new_kernel[:, 0], kernel[:, 0] - 0.125 * by_kernel / norm, rtol=1e-5)
    np.testing.assert_allclose(new_bias, bias - 0.125 * by_bias / norm, rtol=1e-5)


def test_adamw_in_the_trainer_decays_what_it_should_at_the_scheduled_rate():
    model = TupeMaskedLM(TupeBackbone(23, 1, 2, 6, 11, dropout=0.0, max_sequence_length=5))
    schedule = LinearWarmupDecay(0.4, total_steps=8, warmup_steps=2)
    trainer = Trainer(model, xla=False)
    trainer.compile(adamw(schedule, weight_decay=0.5))
    for variable in model.trainable_variables:
        variable.assign(np.full(variable.shape, 2.0))
    ids = np.zeros((3, 5), "int32")
    inputs = {"token_ids": ids, "padding_mask": ids + 1, "mask_positions": ids[:, :2]}
    weights = np.zeros((3, 2), "float32")  # no masked token, no gradient: decay alone
    for step in range(3):
        trainer.fit(inputs, ids[:, :2], weights, verbose=0)
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


@pytest.mark.parametrize("micro_batches", [1, 4])
def test_losses_and_metrics_are_those_of_all_tokens(micro_batches):
    random = np.random.default_rng(3)
    inputs = random.normal(size=(12, 3, 4)).astype("float32")
    targets = random.integers(0, 5, (12, 3), "int32")
    weights = (np.arange(3) < random.integers(0, 4, (12, 1))).astype("float32")
    model = keras.Sequential([keras.Input((3, 4)), keras.layers.Dense(5)])
    trainer = Trainer(model, micro_batches=micro_batches)
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
    history = fit(trainer, inputs, targets, 12, sample_weight=weights)
    np.testing.assert_allclose(history["loss"], loss, rtol=1e-6)
    data = {"x": inputs, "y": targets, "sample_weight": weights}
    # the last batch has 2 rows
    found = trainer.evaluate(**data, batch_size=5)
    np.testing.assert_allclose(found["loss"], loss, rtol=1e-6)
    np.testing.assert_allclose(found["sparse_categorical_accuracy"], accuracy, rtol=1e-6)


@pytest.mark.parametrize("xla", [False, True])
def test_a_short_last_batch_counts_as_what_it_is(xla):
    """On two replicas one of them has none of its rows."""
    inputs, targets = linear_rows(13)
    weights = (np.arange(13, dtype="float32") + 1) % 4
    model = linear_model()
    kernel, bias = model.get_weights()
    loss = keras.losses.MeanSquaredError(reduction="mean_with_sample_weight")
    trainer = compiled(model, lambda: keras.optimizers.SGD(0.1), loss, ["mae"], xla=xla)
    fit(trainer, inputs, targets, sample_weight=weights)
    for first in (0, 4, 8, 12):
        rows = slice(first, first + 4)
        share = (weights[rows] / weights[rows].sum())[:, None]
        slope = 2 * share * (inputs[rows] @ kernel + bias - targets[rows])
        kernel, bias = kernel - 0.1 * inputs[rows].T @ slope, bias - 0.1 * slope.sum(axis=0)
    for mine, expected in zip(model.get_weights(), (kernel, bias), strict=True):
        np.testing.assert_allclose(mine, expected, rtol=1e-5, atol=1e-6)
    found = trainer.evaluate(inputs, targets, weights, batch_size=4)
    errors = (inputs @ kernel + bias - targets)[:, 0]
    expected = [np.average(x, weights=weights) for x in (errors**2, np.abs(errors))]
    np.testing.assert_allclose([found["loss"], found["mae"]], expected, rtol=1e-5)


def test_weights_and_targets_may_have_an_axis_of_one_as_in_keras():
    inputs, targets = linear_rows(8)
    weights, losses = np.arange(8, dtype="float32"), []
    for shape in ((8,), (8, 1)):
        trainer = compiled(linear_model())
        losses += fit(trainer, inputs, targets, 8, sample_weight=weights.reshape(shape))["loss"]
    assert losses[0] == losses[1]
    for shape in ((8,), (8, 1)):
        trainer = compiled(linear_model(), loss=lambda y, outputs: ops.square(y - outputs))
        losses += fit(trainer, inputs, targets.reshape(shape), 8)["loss"]
    assert losses[2] == pytest.approx(losses[3], rel=1e-6)


class Numbered(keras.utils.PyDataset):
    """Batch i has the target i; made by two threads ahead of their use."""

    def __init__(self, count):
        super().__init__(workers=2, max_queue_size=4)
        self._count, self.ends = count, 0

    @property
    def num_batches(self):
        return self._count

    def __getitem__(self, index):
        inputs, _ = linear_rows(4)
        return inputs, np.full((4, 1), index, "float32"), np.ones((4, 1), "float32")

    def on_epoch_end(self):
        self.ends += 1


def test_batches_made_by_threads_are_trained_on_in_their_order():
    model = linear_model()
    loss = keras.losses.MeanSquaredError(reduction="mean_with_sample_weight")
    # no step changes anything, so that each loss tells its batch
    trainer = compiled(model, lambda: keras.optimizers.SGD(0.0), loss, ["mean_absolute_error"])
    outputs = ops.convert_to_numpy(model(linear_rows(4)[0]))
    expected = [float(np.mean((outputs - number) ** 2)) for number in range(6)]
    losses, data = [], Numbered(6)
    record = keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, logs: losses.append(trainer.last_step["batch_loss"])
    )
    for _ in range(2):
        trainer.fit(data, callbacks=[record], verbose=0)
    np.testing.assert_allclose(losses, 2 * expected, rtol=1e-5)
    assert (trainer.step, data.ends) == (12, 2)


def test_single_batches_are_those_of_fit():
    inputs, targets = linear_rows(12)
    one, other = compiled(linear_model()), compiled(linear_model())
    losses = [one.train_on_batch(inputs[n : n + 4], targets[n : n + 4]) for n in (0, 4, 8)]
    assert np.mean(losses) == pytest.approx(fit(other, inputs, targets)["loss"][0], rel=1e-6)
    for mine, theirs in zip(one.model.get_weights(), other.model.get_weights(), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_batches_of_several_widths_have_one_graph(tensorflow):
    inputs = keras.Input((None, 3))
    model = keras.Model(inputs, keras.layers.Dense(1)(inputs))
    trainer = compiled(model)
    widths = [np.ones((4, width, 3), "float32") for width in (2, 5, 3, 7)]
    shape = tensorflow.TensorSpec((4, None, 3)), tensorflow.TensorSpec((4, None, 1))
    data = tensorflow.data.Dataset.from_generator(
        lambda: ((x, x[..., :1]) for x in widths), output_signature=shape
    )
    trainer.fit(data, epochs=2, verbose=0)
    trainer.evaluate(data, verbose=0)
    steps = trainer._steps
    assert trainer.step == 8
    assert steps._train.experimental_get_tracing_count() == 1
    assert steps._evaluate.experimental_get_tracing_count() == 1
