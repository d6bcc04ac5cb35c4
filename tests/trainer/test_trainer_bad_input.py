"""What the trainer refuses, and says."""

import keras
import pytest
from trainer_cases import linear_model, linear_rows

from keras_tupe.trainer import Trainer


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"xla": "maybe"}, "`xla` must be 'auto', True or False. Received: xla='maybe'"),
        ({"micro_batches": 0}, "`micro_batches` must be a positive integer"),
        ({"remat": "maybe"}, "`remat` must be True or False. Received: remat='maybe'"),
        ({"skip_bad_steps": -1}, "`skip_bad_steps` must be an integer >= 0"),
        ({"skip_bad_steps": True}, "`skip_bad_steps` must be an integer >= 0"),
    ],
)
def test_impossible_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        Trainer(linear_model(), **arguments)


def two_outputs():
    inputs = keras.Input((5,))
    return keras.Model(inputs, [keras.layers.Dense(1)(inputs), keras.layers.Dense(1)(inputs)])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: keras.Sequential([keras.layers.Dense(1)]), "must be a built Keras model"),
        (lambda: keras.layers.Dense(1), "must be a built Keras model"),
        (two_outputs, "must have one output.*2 outputs"),
    ],
)
def test_what_is_no_model_with_one_output(make, message):
    with pytest.raises(ValueError, match=message):
        Trainer(make())


@pytest.mark.parametrize(
    "loss",
    [
        keras.losses.MeanSquaredError(reduction="sum"),
        keras.losses.MeanSquaredError(reduction=None),
        "auto",  # of a model that knows none
        None,
    ],
)
def test_a_loss_that_is_no_mean(loss):
    with pytest.raises(ValueError, match="`loss` must be one Keras loss whose reduction"):
        Trainer(linear_model()).compile("sgd", loss)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"use_ema": True}, "without `use_ema`.*Received: use_ema=True"),
        ({"gradient_accumulation_steps": 2}, "without `gradient_accumulation_steps`"),
        ({"loss_scale_factor": 2.0}, "without `loss_scale_factor`"),
    ],
)
def test_optimizers_that_do_the_work_of_the_trainer(arguments, message):
    with pytest.raises(ValueError, match=message):
        Trainer(linear_model()).compile(keras.optimizers.SGD(**arguments), "mse")


def test_an_optimizer_that_was_used_before():
    plain, mine = keras.optimizers.SGD(momentum=0.9), keras.optimizers.SGD(momentum=0.9)
    plain.build(linear_model().trainable_variables)
    Trainer(linear_model()).compile(mine, "mse")
    for used in (plain, mine, keras.optimizers.LossScaleOptimizer(mine)):
        with pytest.raises(ValueError, match="an optimizer that was not used before"):
            Trainer(linear_model()).compile(used, "mse")


def test_a_model_with_losses_of_its_own():
    trainer = Trainer(linear_model(kernel_regularizer="l2"))
    with pytest.raises(ValueError, match="regularizers and `add_loss` would be left out"):
        trainer.compile("sgd", "mse")


def test_a_layer_that_adds_a_loss():
    inputs = keras.Input((5,))
    hidden = keras.layers.ActivityRegularization(l2=1.0)(inputs)
    trainer = Trainer(keras.Model(inputs, keras.layers.Dense(1)(hidden)))
    trainer.compile("sgd", "mse")
    with pytest.raises(ValueError, match="regularizers and `add_loss` would be left out"):
        trainer.fit(*linear_rows(8), verbose=0)


def test_a_model_with_state_that_training_changes():
    layers = [keras.Input((5,)), keras.layers.BatchNormalization(), keras.layers.Dense(1)]
    trainer = Trainer(keras.Sequential(layers))
    trainer.compile("sgd", "mse")
    with pytest.raises(ValueError, match="moving_mean' in training"):
        trainer.fit(*linear_rows(8), verbose=0)


@pytest.mark.parametrize(("num_rows", "batch_size"), [(16, 8), (14, 6)])
def test_batches_that_cannot_be_divided(num_rows, batch_size):
    trainer = Trainer(linear_model(), micro_batches=3 if num_rows == 16 else 6)
    trainer.compile("sgd", "mse")
    with pytest.raises(Exception, match="multiple of *\n*.*micro_batches="):
        trainer.fit(*linear_rows(num_rows), batch_size=batch_size, shuffle=False, verbose=0)


def test_no_data(tensorflow):
    data = tensorflow.data.Dataset.from_tensor_slices(linear_rows(8)).batch(4).take(0)
    trainer = Trainer(linear_model())
    trainer.compile("sgd", "mse", weighted_metrics=["mae"])
    with pytest.raises(ValueError, match="at least one batch"):
        trainer.fit(data, verbose=0)
    assert trainer.step == 0


def test_a_model_keeps_its_own_optimizer():
    model = linear_model()
    model.compile("adam", "mae", metrics=["mse"])
    optimizer = model.optimizer
    trainer = Trainer(model)
    trainer.compile("sgd")  # with the loss of the model
    trainer.fit(*linear_rows(8), verbose=0)
    assert model.optimizer is optimizer
    assert int(optimizer.iterations) == 0
