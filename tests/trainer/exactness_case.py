"""A small TUPE-R, the rows it trains on, and its update: the same on every route and backend."""

import keras
import numpy as np

from keras_tupe import TupeBackbone, TupeMaskedLM, positions
from keras_tupe.trainer import adamw

NUM_STEPS, ROWS = 20, 16
LENGTH, PREDICTIONS, VOCABULARY_SIZE = 7, 5, 23
HEADS, WIDTH = 2, 10
CLIP_NORM = 0.1
OPTIMIZERS = {
    "sgd": lambda: keras.optimizers.SGD(0.5, global_clipnorm=CLIP_NORM),
    "momentum": lambda: keras.optimizers.SGD(0.1, momentum=0.9, global_clipnorm=CLIP_NORM),
    "adamw": lambda: adamw(1e-2, clip_norm=CLIP_NORM),
}


def number_after(name, words):
    """Returns the number behind a name among a route's words, such as 4 in `micro4`, or 1."""
    numbers = (word.removeprefix(name) for word in words if word.startswith(name))
    return int(next(numbers, 1))


def new_model(dropout=0.0, dtype="float32"):
    """Returns the model, the same every time, with random values in all of its weights."""
    keras.utils.set_random_seed(3)
    sizes = {"max_sequence_length": LENGTH, "num_segments": 2}  # a table with a sparse gradient
    backbone = TupeBackbone(
        VOCABULARY_SIZE, 1, HEADS, WIDTH, 14, dropout=dropout, dtype=dtype, **sizes
    )
    model = TupeMaskedLM(backbone)
    random = np.random.default_rng(4)
    for weight in model.trainable_variables:
        center = 1.0 if weight.path.endswith("gamma") else 0.0
        weight.assign(random.normal(center, 0.3, weight.shape))
    return model


def rows(num_steps=NUM_STEPS):
    """Returns `(inputs, labels, weights)`; the first half of each batch has few masked tokens."""
    random = np.random.default_rng(5)
    count = num_steps * ROWS
    lengths = random.integers(PREDICTIONS, LENGTH + 1, (count, 1))
    inputs = {
        "token_ids": random.integers(0, VOCABULARY_SIZE, (count, LENGTH), "int32"),
        "padding_mask": (np.arange(LENGTH) < lengths).astype("int32"),
        "segment_ids": random.integers(0, 2, (count, LENGTH), "int32"),
        "mask_positions": np.tile(np.arange(PREDICTIONS, dtype="int32"), (count, 1)),
    }
    labels = random.integers(0, VOCABULARY_SIZE, (count, PREDICTIONS), "int32")
    most = np.where(np.arange(count) % ROWS < ROWS // 2, 1, PREDICTIONS)
    slots = random.integers(0, most + 1)[:, None]
    return inputs, labels, (np.arange(PREDICTIONS) < slots).astype("float32")


def live_weights(model):
    """Returns all weights with a gradient in one vector; the others move by rounding alone."""
    method = positions.get(model.backbone.position)
    dims = positions.Dims(HEADS, WIDTH // HEADS, LENGTH)
    dead = method.dead_weights(dims, model.backbone.position_options)
    found = []
    for variable in model.trainable_variables:
        value = np.array(keras.ops.convert_to_numpy(variable))
        for record in dead:
            if variable.path.endswith(record.path):
                value[slice(None) if record.row is None else record.row] = 0.0
        if "pooled_dense" not in variable.path:  # no part of masked language modeling
            found.append(value.ravel())
    return np.concatenate(found)
