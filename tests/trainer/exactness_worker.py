"""Trains one small TUPE-R by several routes, from the same weights on the same batches.

A process of its own, because logical devices and TF_CONFIG come before TensorFlow starts. A route
is words joined by "-": where (`plain`, `onedevice`, `mirrored` on two logical CPUs, `gpus`,
`workers`), optimizer (`sgd`, `momentum`, `adamw`), and any of `micro4` (other numbers too), `xla`,
`noxla`, `remat`, `several` and `replaced` (models with several losses), `seq2seq` (an encoder and a
decoder) and `stock` (Keras's own `fit`). Updates, norms and scores go to an `.npz` file, and with
`behaviour` what `replica_behaviour` finds:

    python tests/trainer/exactness_worker.py OUT.npz plain-sgd mirrored-sgd-micro4-xla behaviour
"""

import contextlib
import os
import sys

import keras
import numpy as np
import tensorflow as tf
from exactness_case import (
    NUM_STEPS,
    OPTIMIZERS,
    ROWS,
    kind_of,
    live_weights,
    losses,
    new_model,
    number_after,
    rows,
)

from keras_tupe.trainer import Trainer

XLA = {"xla": True, "noxla": False}


def batched(data, rows_per_batch=ROWS):
    return tf.data.Dataset.from_tensor_slices(data).batch(rows_per_batch, drop_remainder=True)


def part_of_worker(context, data):
    """Returns the batches of one worker: its rows of every batch."""
    share = ROWS // context.num_input_pipelines
    first = context.input_pipeline_id * share
    mine = (np.arange(NUM_STEPS)[:, None] * ROWS + np.arange(first, first + share)).ravel()
    return batched(tf.nest.map_structure(lambda x: x[mine], data), share)


class Norms(keras.callbacks.Callback):
    """Keeps the norm of every step's gradient."""

    def __init__(self):
        super().__init__()
        self.norms = []

    def on_train_batch_end(self, batch, logs=None):
        self.norms.append(getattr(self.model, "last_step", {}).get("gradient_norm", np.nan))


def train(strategy, words):
    """Returns what a route found, arrays by name."""
    scope = strategy.scope() if strategy else contextlib.nullcontext()
    kind = kind_of(words)
    with scope:
        model = new_model(kind=kind)
        optimizer = next(OPTIMIZERS[word] for word in words if word in OPTIMIZERS)()
        if "stock" in words:
            trainer = model
            trainer.compile(optimizer, jit_compile=False)
        else:
            xla = next((XLA[word] for word in words if word in XLA), "auto")
            parts = number_after("micro", words)
            trainer = Trainer(model, micro_batches=parts, xla=xla, remat="remat" in words)
            trainer.compile(optimizer, **losses(kind))
    data = rows(kind=kind)
    if "workers" in words:
        dataset = strategy.distribute_datasets_from_function(lambda c: part_of_worker(c, data))
    else:
        dataset = batched(data)
    initial, norms = live_weights(model), Norms()
    trainer.fit(dataset, verbose=0, callbacks=[norms])
    update = live_weights(model) - initial
    scores = {} if "stock" in words else trainer.evaluate(dataset)
    return {
        "update": update,
        "norms": np.array(norms.norms),
        "scores": np.array([scores[name] for name in sorted(scores)]),
        "names": np.array(sorted(scores)),
    }


def two_cpus():
    (cpu,) = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    return tf.distribute.MirroredStrategy()


def all_gpus():
    # TensorFloat-32 rounds products to 10 bits, more than the routes may differ.
    tf.config.experimental.enable_tensor_float_32_execution(False)
    return tf.distribute.MirroredStrategy()


def main(out, *routes):
    if "TF_CONFIG" in os.environ:
        strategies = {"workers": tf.distribute.MultiWorkerMirroredStrategy()}
    elif any(route.startswith("gpus") for route in routes):
        strategies = {"plain": None, "gpus": all_gpus()}
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
