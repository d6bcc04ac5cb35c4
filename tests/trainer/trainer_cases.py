"""Models and data whose right answers are known without the trainer."""

import keras
import numpy as np

from keras_tupe.trainer import Trainer

ROWS, FEATURES = 8, 67


@keras.saving.register_keras_serializable("tests")
class Gains(keras.layers.Layer):
    """Sums its inputs, each times a weight: the weight's gradient is the sum of the inputs."""

    def build(self, input_shape):
        self.gains = self.add_weight(shape=input_shape[-1:], initializer="zeros", name="gains")

    def call(self, inputs):
        return keras.ops.sum(inputs * self.gains, axis=-1)


def mask_trainer(dropout=keras.layers.Dropout, **kwargs):
    """Returns a trainer whose weights after a step tell which inputs its dropout kept."""
    inputs = keras.Input((FEATURES,))
    trainer = Trainer(keras.Model(inputs, Gains(name="gains")(dropout(0.5)(inputs))), **kwargs)
    trainer.compile(keras.optimizers.SGD(1.0), loss=lambda targets, outputs: outputs)
    return trainer


def masks_of(trainer, num_steps=1):
    """Trains, and returns which input of which row was kept, booleans (steps, rows, features).

    Row r holds 4**r, of which half is kept and doubled: a weight's update is a number whose digits
    to the base 4 are the rows.
    """
    digits = np.tile(4.0 ** np.arange(ROWS)[:, None], (num_steps, FEATURES)).astype("float32")
    (gains,) = trainer.model.trainable_variables
    values = [keras.ops.convert_to_numpy(gains).copy()]

    class Keep(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            values.append(keras.ops.convert_to_numpy(gains).copy())

    targets = np.zeros(len(digits), "float32")
    trainer.fit(digits, targets, batch_size=ROWS, shuffle=False, verbose=0, callbacks=[Keep()])
    updates = -np.diff(np.array(values, "float64"), axis=0) * ROWS / 2
    kept = np.round(updates)[:, None] // 4 ** np.arange(ROWS)[:, None] % 4
    assert set(np.unique(kept)) <= {0, 1}
    return kept.astype(bool)


def linear_model(**kwargs):
    """Returns a linear model of 5 numbers with random weights."""
    model = keras.Sequential([keras.Input((5,)), keras.layers.Dense(1, name="dense", **kwargs)])
    random = np.random.default_rng(1)
    model.set_weights([random.normal(size=w.shape) for w in model.get_weights()])
    return model


def linear_rows(num_rows, seed=2):
    """Returns float32 inputs (rows, 5) and targets (rows, 1)."""
    random = np.random.default_rng(seed)
    return random.normal(size=(num_rows, 5)).astype("float32"), random.normal(
        size=(num_rows, 1)
    ).astype("float32")


def state_of(trainer):
    """Returns all that a run goes on from but the counters of steps, arrays by name."""
    return {
        name: keras.ops.convert_to_numpy(variable).copy()
        for name, variable in trainer.state_variables.items()
        if not name.startswith("trainer/")
    }


def assert_same_state(one, other):
    assert one.keys() == other.keys()
    for name, value in one.items():
        np.testing.assert_array_equal(value, other[name], err_msg=name)


def compiled(model, optimizer=None, loss="mse", metrics=None, **kwargs):
    trainer = Trainer(model, **kwargs)
    optimizer = optimizer or keras.optimizers.SGD(0.1, momentum=0.9)
    trainer.compile(optimizer, loss, weighted_metrics=metrics)
    return trainer


def fit(trainer, inputs, targets, batch_size=4, **kwargs):
    return trainer.fit(
        inputs, targets, batch_size=batch_size, shuffle=False, verbose=0, **kwargs
    ).history


def rows_with_a_bad_one(step, batch_size=4, num_rows=20):
    inputs, targets = linear_rows(num_rows)
    targets[step * batch_size + 1] = np.nan
    return inputs, targets
