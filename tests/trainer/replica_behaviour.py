"""What happens on two replicas, in a process that has two logical devices; the tests judge it."""

import contextlib

import keras
import numpy as np
import tensorflow as tf
from trainer_cases import ROWS, linear_model, linear_rows, mask_trainer, masks_of

from keras_tupe.trainer import NonFiniteError, Trainer

BAD_STEP = 2


def linear_trainer(strategy=None, metrics=None, **kwargs):
    with strategy.scope() if strategy else contextlib.nullcontext():
        trainer = Trainer(linear_model(), **kwargs)
        optimizer = keras.optimizers.SGD(0.1, momentum=0.9, global_clipnorm=0.5)
        loss = keras.losses.MeanSquaredError(reduction="mean_with_sample_weight")
        trainer.compile(optimizer, loss, weighted_metrics=metrics)
    return trainer


def flat(trainer, strategy):
    """Returns the weights and the state of the optimizer of every replica, as rows."""
    copies = [
        [value.numpy() for value in strategy.experimental_local_results(variable.value)]
        for name, variable in trainer.state_variables.items()
        if not name.startswith("trainer/")
    ]
    return np.stack(
        [np.concatenate([np.ravel(x) for x in row]) for row in zip(*copies, strict=True)]
    ).astype("float64")


def masks(strategy):
    """Masks of two replicas, of the same after a resume, and of two micro-batches instead."""

    def made():
        keras.utils.set_random_seed(11)
        return mask_trainer()

    with strategy.scope():
        whole = made()
        keras.utils.set_random_seed(12)
        resumed = mask_trainer()
        keras.utils.set_random_seed(11)
        in_four = mask_trainer(micro_batches=2)
    keras.utils.set_random_seed(11)
    in_two = mask_trainer(micro_batches=2)
    first = masks_of(whole, 2)
    for name, variable in resumed.state_variables.items():
        variable.assign(whole.state_variables[name])
    return {
        "masks": np.concatenate([first, masks_of(whole, 2)]),
        "resumed_masks": np.concatenate([first, masks_of(resumed, 2)]),
        "masks_of_four_parts": masks_of(in_four, 2),
        "masks_of_micro_batches": masks_of(in_two, 4),
    }


def bad_steps(strategy):
    """One bad row, on the second replica: the weights before, after the error, and if tolerated."""
    inputs, targets = linear_rows(5 * ROWS)
    good = np.arange(len(inputs)) // ROWS != BAD_STEP
    targets[BAD_STEP * ROWS + ROWS - 1] = np.nan
    settings = {"batch_size": ROWS, "shuffle": False, "verbose": 0}
    clean, begin = linear_trainer(strategy), np.arange(len(inputs)) // ROWS < BAD_STEP
    clean.fit(inputs[begin], targets[begin], **settings)
    found = {"before": flat(clean, strategy)}
    clean.fit(inputs[good & ~begin], targets[good & ~begin], **settings)
    found["clean"] = flat(clean, strategy)
    stopped, tolerant = (linear_trainer(strategy, skip_bad_steps=number) for number in (0, 1))
    try:
        stopped.fit(inputs, targets, **settings)
        bad_step = -1
    except NonFiniteError as error:
        bad_step = error.step
    history = tolerant.fit(inputs, targets, **settings).history
    return found | {
        "stopped": flat(stopped, strategy),
        "bad_step": np.array(bad_step),
        "tolerant": flat(tolerant, strategy),
        "steps": np.array([tolerant.step, tolerant.skipped_steps]),
        "loss": np.array(history["loss"][-1]),
    }


def odd_sizes(strategy):
    """Runs where the last batch is short; in batches of 4, one replica gets no row of it.

    With XLA on two replicas, and without it on one.
    """
    inputs, targets = linear_rows(13)
    weights = np.arange(13, dtype="float32") % 4
    data = tf.data.Dataset.from_tensor_slices((inputs, targets, weights)).batch(4)
    found = {}
    for name, where in (("two", strategy), ("one", None)):
        trainer = linear_trainer(where, metrics=["mae"], xla=where is strategy)
        trainer.fit(data, epochs=2, verbose=0)
        evaluated = trainer.evaluate(data)
        found[f"{name}_weights"] = trainer.model.get_weights()[0]
        found[f"{name}_evaluated"] = np.array([evaluated["loss"], evaluated["mae"]])
        found["predicted"] = trainer.model.predict(inputs, verbose=0)
    return {**found, "targets": targets, "row_weights": weights}


def refusals(strategy):
    """What is said about models, trainers and `compile` outside their scope."""

    def message(*scopes):
        model_scope, trainer_scope, compile_scope = (
            strategy.scope() if inside else contextlib.nullcontext() for inside in scopes
        )
        try:
            with model_scope:
                model = linear_model()
            with trainer_scope:
                trainer = Trainer(model)
            with compile_scope:
                trainer.compile("sgd", "mse")
        except ValueError as error:
            return str(error)
        return "none"

    return {
        "messages": np.array(
            [message(False, True, True), message(True, False, False), message(True, True, False)]
        )
    }


def half_precision(strategy):
    """A float16 run that begins with an overflow."""
    with strategy.scope():
        trainer = Trainer(linear_model(dtype="mixed_float16"))
        trainer.compile(keras.optimizers.SGD(0.05), "mse")
        trainer.counters["loss_scale"].assign(2.0**20)
    inputs, _ = linear_rows(ROWS * 20)
    targets = inputs.sum(axis=-1, keepdims=True)
    data = tf.data.Dataset.from_tensor_slices((inputs, targets)).batch(ROWS, drop_remainder=True)
    losses = trainer.fit(data, epochs=4, verbose=0).history["loss"]
    return {
        "half_losses": np.array(losses),
        "half_scale": np.array(float(trainer.counters["loss_scale"].numpy())),
        "half_steps": np.array([trainer.step, trainer.skipped_steps]),
        "half_iterations": np.array(trainer.optimizer.iterations.numpy()),
    }


def found(strategy):
    parts = (masks, bad_steps, odd_sizes, refusals, half_precision)
    return {name: value for part in parts for name, value in part(strategy).items()}
