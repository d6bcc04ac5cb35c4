"""Models and data whose right answers are known without the trainer."""

import contextlib
import functools

import keras
import numpy as np

from keras_tupe.trainer import LinearWarmupDecay, Trainer, adamw

ROWS, FEATURES = 8, 67
scope = contextlib.nullcontext  # in which models and trainers are made, see `conftest.py`


def in_scope(make):
    """Returns a function that does what another does, in the scope of all trainers."""

    @functools.wraps(make)
    def made(*args, **kwargs):
        with scope():
            return make(*args, **kwargs)

    return made


OPTIMIZERS = {
    "adamw": lambda: adamw(0.1, clip_norm=0.5),
    "adamw_schedule": lambda: adamw(LinearWarmupDecay(0.1, 6, 2), decay_all=True, clip_norm=None),
    "adam": lambda: keras.optimizers.Adam(0.1, weight_decay=0.1, clipnorm=0.5),
    "amsgrad": lambda: keras.optimizers.Adam(0.1, amsgrad=True, clipvalue=0.1),
    "nadam": lambda: keras.optimizers.Nadam(0.1, global_clipnorm=0.5),
    "momentum": lambda: keras.optimizers.SGD(0.1, momentum=0.9, nesterov=True, weight_decay=0.1),
    "rmsprop": lambda: keras.optimizers.RMSprop(0.1, centered=True),
    "lion": lambda: keras.optimizers.Lion(0.01, weight_decay=0.1),
    "lamb": lambda: keras.optimizers.Lamb(0.1),
    "adafactor": lambda: keras.optimizers.Adafactor(0.1),
    "ftrl": lambda: keras.optimizers.Ftrl(0.1),
}


@keras.saving.register_keras_serializable("tests")
class Gains(keras.layers.Layer):
    """Sums its inputs, each times a weight: the weight's gradient is the sum of the inputs."""

    def build(self, input_shape):
        self.gains = self.add_weight(shape=input_shape[-1:], initializer="zeros", name="gains")

    def call(self, inputs):
        return keras.ops.sum(inputs * self.gains, axis=-1)


@in_scope
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


@in_scope
def linear_model(**kwargs):
    """Returns a linear model of 5 numbers with random weights."""
    model = keras.Sequential([keras.Input((5,)), keras.layers.Dense(1, name="dense", **kwargs)])
    random = np.random.default_rng(1)
    model.set_weights([random.normal(size=w.shape) for w in model.get_weights()])
    return model


LOSS_WEIGHTS = {"first": 1.0, "second": 2.5}  # of the model of two


class Squares(keras.losses.Loss):
    """The square of each difference, of the shape of the targets."""

    def call(self, targets, outputs):
        return keras.ops.square(targets - outputs)


@in_scope
def model_of_two():
    """Returns a linear model with two outputs, and its kernels in float64."""
    inputs, random, kernels, outputs = keras.Input((5,)), np.random.default_rng(0), {}, {}
    for name in LOSS_WEIGHTS:
        dense = keras.layers.Dense(1, use_bias=False, name=f"{name}_dense")
        outputs[name], kernels[name] = dense(inputs), random.normal(size=(5, 1))
        dense.set_weights([kernels[name]])
    return keras.Model(inputs, outputs), kernels


def rows_of_two(count):
    """Returns inputs, targets, and weights of which the second half has few."""
    random = np.random.default_rng(1)
    inputs = random.normal(size=(count, 5)).astype("float32")
    targets = {name: random.normal(size=(count, 1)).astype("float32") for name in LOSS_WEIGHTS}
    weights = {name: random.random((count, 1)).astype("float32") for name in LOSS_WEIGHTS}
    weights["second"][: count // 2] = 0
    weights["second"][-1] = 7
    return inputs, targets, weights


def linear_rows(num_rows, seed=2):
    """Returns float32 inputs (rows, 5) and targets (rows, 1)."""
    random = np.random.default_rng(seed)
    return random.normal(size=(num_rows, 5)).astype("float32"), random.normal(
        size=(num_rows, 1)
    ).astype("float32")


def state_of(trainer):
    """Returns all that a run goes on from but the counters of steps, arrays by name."""
    return {
        name: copies_of(variable)
        for name, variable in trainer.state_variables.items()
        if not name.startswith("trainer/")
    }


def copies_of(variable):
    """Returns the value that a variable has, the same on every replica."""
    value = keras.ops.convert_to_numpy(variable).copy()
    for copy in getattr(variable.value, "values", ()):
        np.testing.assert_array_equal(copy, value, err_msg=f"replicas differ: {variable.path}")
    return value


def assert_same_state(one, other):
    """Of two trainers: Keras gives their optimizers other names."""
    for (name, value), other_value in zip(one.items(), other.values(), strict=True):
        np.testing.assert_array_equal(value, other_value, err_msg=name)


@in_scope
def compiled(model, optimizer=None, loss="mse", metrics=None, **kwargs):
    trainer = Trainer(model, **kwargs)
    optimizer = optimizer() if optimizer else keras.optimizers.SGD(0.1, momentum=0.9)
    trainer.compile(optimizer, loss, weighted_metrics=metrics)
    return trainer


def fit(trainer, inputs, targets, batch_size=4, **kwargs):
    return trainer.fit(
        inputs, targets, batch_size=batch_size, shuffle=False, verbose=0, **kwargs
    ).history


def rows_with_a_bad_one(step, batch_size=4, num_rows=20):
    inputs, targets = linear_rows(num_rows)
    targets[(step + 1) * batch_size - 1] = np.nan  # on the last replica
    return inputs, targets
