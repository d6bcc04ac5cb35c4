"""Trains one small TUPE-R by several routes, from the same weights on the same batches.

A process of its own, because logical devices and TF_CONFIG come before TensorFlow starts. A route
is words joined by "-": where (`plain`, `onedevice`, `mirrored`, `workers`), optimizer (`sgd`,
`momentum`, `adamw`), and any of `micro4`, `xla`, `noxla`, `group5` (steps per call) and `stock`
(Keras's own `fit`). Updates, norms and losses go to an `.npz` file, and with `behaviour` what
`replica_behaviour` finds:

    python tests/trainer/exactness_worker.py OUT.npz plain-sgd mirrored-sgd-micro4-xla behaviour
"""

import contextlib
import os
import sys

import keras
import numpy as np
import tensorflow as tf

from keras_tupe import TupeBackbone, TupeMaskedLM, positions
from keras_tupe.trainer import Trainer, adamw

NUM_STEPS, ROWS = 20, 16
LENGTH, PREDICTIONS, VOCABULARY_SIZE = 7, 5, 23
HEADS, WIDTH = 2, 10
CLIP_NORM = 0.1
XLA = {"xla": True, "noxla": False}
OPTIMIZERS = {
    "sgd": lambda: keras.optimizers.SGD(0.5, global_clipnorm=CLIP_NORM),
    "momentum": lambda: keras.optimizers.SGD(0.1, momentum=0.9, global_clipnorm=CLIP_NORM),
    "adamw": lambda: adamw(1e-2, clip_norm=CLIP_NORM),
}


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


def batched(data, rows_per_batch=ROWS):
    return tf.data.Dataset.from_tensor_slices(data).batch(rows_per_batch, drop_remainder=True)


def part_of_worker(context, data):
    """Returns the batches of one worker: its rows of every batch."""
    share = ROWS // context.num_input_pipelines
    first = context.input_pipeline_id * share
    mine = (np.arange(NUM_STEPS)[:, None] * ROWS + np.arange(first, first + share)).ravel()
    return batched(tf.nest.map_structure(lambda x: x[mine], data), share)


def live_weights(model):
    """Returns all weights with a gradient in one vector; the others move by rounding alone."""
    method = positions.get(model.backbone.position)
    dims = positions.Dims(HEADS, WIDTH // HEADS, LENGTH)
    dead = method.dead_weights(dims, model.backbone.position_options)
    found = []
    for variable in model.trainable_variables:
        value = np.array(variable.numpy())
        for record in dead:
            if variable.path.endswith(record.path):
                value[slice(None) if record.row is None else record.row] = 0.0
        if "pooled_dense" not in variable.path:  # no part of masked language modeling
            found.append(value.ravel())
    return np.concatenate(found)


class Log(keras.callbacks.Callback):
    """Keeps the logs of every call."""

    def __init__(self):
        super().__init__()
        self.logs = []

    def on_train_batch_end(self, batch, logs=None):
        self.logs.append({"last": batch, **logs})


def train(strategy, words):
    """Returns what a route found, arrays by name."""
    scope = strategy.scope() if strategy else contextlib.nullcontext()
    with scope:
        model = new_model()
        optimizer = next(OPTIMIZERS[word] for word in words if word in OPTIMIZERS)()
        if "stock" in words:
            trainer = model
            trainer.compile(optimizer, jit_compile=False)
        else:
            xla = next((XLA[word] for word in words if word in XLA), "auto")
            trainer = Trainer(model, micro_batches=4 if "micro4" in words else 1, xla=xla)
            trainer.compile(
                optimizer,
                weighted_metrics=["sparse_categorical_accuracy"],
                steps_per_execution=5 if "group5" in words else 1,
            )
    data = rows()
    if "workers" in words:
        dataset = strategy.distribute_datasets_from_function(lambda c: part_of_worker(c, data))
    else:
        dataset = batched(data)
    initial, log = live_weights(model), Log()
    steps = {"steps_per_epoch": NUM_STEPS} if "workers" in words else {}
    history = trainer.fit(dataset, verbose=0, callbacks=[log], **steps).history
    return {
        "update": live_weights(model) - initial,
        "norms": np.array([logs.get("gradient_norm", np.nan) for logs in log.logs]),
        "history": np.array([history[name][-1] for name in sorted(history)]),
        "names": np.array(sorted(history)),
    }


def two_cpus():
    (cpu,) = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    return tf.distribute.MirroredStrategy()


def main(out, *routes):
    if "TF_CONFIG" in os.environ:
        strategies = {"workers": tf.distribute.MultiWorkerMirroredStrategy()}
    else:
        strategies = {"plain": None, "mirrored": two_cpus()}
        strategies["onedevice"] = tf.distribute.OneDeviceStrategy("CPU:0")
    arrays = {}
    for route in routes:
        if route == "behaviour":
            import replica_behaviour

            found = replica_behaviour.found(strategies["mirrored"])
        else:
            found = train(strategies[route.split("-")[0]], route.split("-"))
        arrays |= {f"{route}/{name}": value for name, value in found.items()}
    np.savez(out, **arrays)


if __name__ == "__main__":
    main(*sys.argv[1:])
