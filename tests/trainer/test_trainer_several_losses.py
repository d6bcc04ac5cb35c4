"""Several losses of one model: each is the mean over its own weights in the whole batch."""

import keras
import numpy as np
import pytest
from keras import ops
from trainer_cases import LOSS_WEIGHTS, Squares, in_scope, model_of_two, rows_of_two

from keras_tupe.trainer import Trainer


@in_scope
def compiled(model, metrics=None, **kwargs):
    trainer = Trainer(model, **kwargs)
    trainer.compile(
        keras.optimizers.SGD(0.1),
        dict.fromkeys(LOSS_WEIGHTS, Squares(reduction="mean_with_sample_weight")),
        loss_weights=LOSS_WEIGHTS,
        weighted_metrics=metrics,
    )
    return trainer


@pytest.mark.parametrize("micro_batches", [1, 4])
def test_a_step_is_that_of_the_equation(micro_batches):
    model, kernels = model_of_two()
    inputs, targets, weights = rows_of_two(8)
    trainer = compiled(model, micro_batches=micro_batches)
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
    inputs, targets, weights = rows_of_two(11)  # batches of other weights, and a short last one
    trainer = compiled(model, {name: ["mean_absolute_error"] for name in LOSS_WEIGHTS})
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
    inputs, targets, weights = rows_of_two(4)
    weights["second"][:] = 0
    trainer = compiled(model)
    trainer.fit(inputs, targets, sample_weight=weights, batch_size=4, verbose=0)
    got = ops.convert_to_numpy(model.get_layer("second_dense").kernel)
    np.testing.assert_allclose(got, kernels["second"], atol=1e-7)
    assert np.isfinite(trainer.last_step["batch_loss"])
