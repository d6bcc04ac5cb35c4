"""Several losses of one model: each is the mean over its own weights in the whole batch."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_tupe.trainer import Trainer

LOSS_WEIGHTS = {"first": 1.0, "second": 2.5}


def model_of_two():
    """Returns a linear model with two outputs, and its kernels in float64."""
    inputs = keras.Input((5,))
    random = np.random.default_rng(0)
    kernels = {name: random.normal(size=(5, 1)) for name in LOSS_WEIGHTS}
    outputs = {
        name: keras.layers.Dense(1, use_bias=False, name=f"{name}_dense")(inputs)
        for name in LOSS_WEIGHTS
    }
    model = keras.Model(inputs, outputs)
    for name, kernel in kernels.items():
        model.get_layer(f"{name}_dense").set_weights([kernel])
    return model, kernels


def rows(count):
    """Returns inputs, targets, and weights of which the second half has few."""
    random = np.random.default_rng(1)
    inputs = random.normal(size=(count, 5)).astype("float32")
    targets = {name: random.normal(size=(count, 1)).astype("float32") for name in LOSS_WEIGHTS}
    weights = {name: random.random((count, 1)).astype("float32") for name in LOSS_WEIGHTS}
    weights["second"][: count // 2] = 0
    weights["second"][-1] = 7
    return inputs, targets, weights


def mean_squares(**reduction):
    return {name: keras.losses.MeanSquaredError(**reduction) for name in LOSS_WEIGHTS}


class Squares(keras.losses.Loss):
    """The square of each difference, of the shape of the targets."""

    def call(self, targets, outputs):
        return ops.square(targets - outputs)


def compiled(trainer, **kwargs):
    loss = Squares(reduction="mean_with_sample_weight")
    given = {"loss": dict.fromkeys(LOSS_WEIGHTS, loss), "loss_weights": LOSS_WEIGHTS}
    trainer.compile(keras.optimizers.SGD(0.1), **{**given, **kwargs})
    return trainer


@pytest.mark.parametrize("micro_batches", [1, 4])
def test_a_step_is_that_of_the_equation(micro_batches):
    model, kernels = model_of_two()
    inputs, targets, weights = rows(8)
    trainer = compiled(Trainer(model, micro_batches=micro_batches))
    batch = {"batch_size": 8, "shuffle": False, "verbose": 0}
    history = trainer.fit(inputs, targets, sample_weight=weights, **batch).history
    total = 0.0
    for name, factor in LOSS_WEIGHTS.items():
        error = inputs @ kernels[name] - targets[name]
        share = weights[name] / weights[name].sum()
        total += factor * (share * error**2).sum()
        expected = kernels[name] - 0.1 * factor * (2 * inputs.T @ (share * error))
        got = ops.convert_to_numpy(model.get_layer(f"{name}_dense").kernel)
        np.testing.assert_allclose(got, expected, atol=1e-6)
    np.testing.assert_allclose(history["loss"], total, rtol=1e-6)
    np.testing.assert_allclose(trainer.last_step["batch_loss"], total, rtol=1e-6)


def test_an_evaluation_is_the_mean_over_all_rows_of_each_loss():
    model, kernels = model_of_two()
    inputs, targets, weights = rows(11)  # batches of other weights, and a short last one
    trainer = compiled(
        Trainer(model), weighted_metrics={name: ["mean_absolute_error"] for name in LOSS_WEIGHTS}
    )
    found = trainer.evaluate(inputs, targets, sample_weight=weights, batch_size=4)
    total = 0.0
    for name, factor in LOSS_WEIGHTS.items():
        error = inputs @ kernels[name] - targets[name]
        mean = np.average(error**2, weights=weights[name])
        total += factor * mean
        np.testing.assert_allclose(found[f"{name}_loss"], mean, rtol=1e-5)
        absolute = np.average(np.abs(error), weights=weights[name])
        np.testing.assert_allclose(found[f"{name}_mean_absolute_error"], absolute, rtol=1e-5)
    np.testing.assert_allclose(found["loss"], total, rtol=1e-5)


def test_a_loss_without_any_weight_adds_nothing():
    model, kernels = model_of_two()
    inputs, targets, weights = rows(4)
    weights["second"][:] = 0
    trainer = compiled(Trainer(model))
    trainer.fit(inputs, targets, sample_weight=weights, batch_size=4, verbose=0)
    got = ops.convert_to_numpy(model.get_layer("second_dense").kernel)
    np.testing.assert_allclose(got, kernels["second"], atol=1e-7)
    assert np.isfinite(trainer.last_step["batch_loss"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"loss": {"first": Squares()}}, r"names of the model's outputs.*losses \['first'\]"),
        ({"loss": "mse"}, "one loss, and a model with 2 outputs"),
        ({"loss_weights": {"third": 1.0}}, "from names of losses.*'third'"),
        ({"loss_weights": {"first": "much"}}, "to numbers.*'much'"),
        ({"loss": mean_squares(reduction="sum")}, "`loss` must be one Keras loss whose reduction"),
    ],
)
def test_losses_that_are_not_those_of_the_outputs(arguments, message):
    with pytest.raises(ValueError, match=message):
        compiled(Trainer(model_of_two()[0]), **arguments)


@pytest.mark.parametrize("wrong", [lambda y: {"first": y["first"]}, lambda y: y["first"]])
def test_targets_need_the_names_of_the_outputs(wrong):
    inputs, targets, _ = rows(4)
    trainer = compiled(Trainer(model_of_two()[0]))
    message = (
        r"targets .* must be a dictionary with the names of its outputs, \['first', 'second'\]"
    )
    with pytest.raises(ValueError, match=message):
        trainer.fit(inputs, wrong(targets), batch_size=4, verbose=0)
