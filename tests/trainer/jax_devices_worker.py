"""Trains the small TUPE-R on one device and on two, on JAX; `test_trainer_jax.py` judges.

A process of its own, because the number of devices comes before JAX starts:

    KERAS_BACKEND=jax XLA_FLAGS=--xla_force_host_platform_device_count=2 \\
        python tests/trainer/jax_devices_worker.py OUT.npz
"""

import sys

import jax
import keras
import numpy as np
from exactness_case import OPTIMIZERS, ROWS, kind_of, live_weights, losses, new_model, rows
from trainer_cases import mask_trainer, masks_of

from keras_tupe.trainer import Trainer

RUNS = {  # number of devices, micro-batches, steps per call
    "one": (1, 1),
    "two": (2, 1),
    "two_micro4": (2, 4),
    "one_micro4": (1, 4),
}

# a graph with several losses takes as long to make as all others together
OPTIMIZERS_OF = dict.fromkeys(
    ("one", "two_micro4"), ("sgd", "adamw", "adamw_several", "adamw_replaced")
)


def train(optimizer, micro_batches, kind=""):
    """Returns the update of a run, and the norm of its last gradient."""
    model = new_model(kind=kind)
    initial = live_weights(model)
    trainer = Trainer(model, micro_batches=micro_batches)
    trainer.compile(OPTIMIZERS[optimizer](), **losses(kind))
    inputs, labels, weights = rows(kind=kind)
    trainer.fit(inputs, labels, sample_weight=weights, batch_size=ROWS, shuffle=False, verbose=0)
    return live_weights(model) - initial, trainer.last_step["gradient_norm"]


def main(out):
    arrays = {}
    for name, (num_devices, micro_batches) in RUNS.items():
        devices = [str(device) for device in jax.devices("cpu")[:num_devices]]
        keras.distribution.set_distribution(
            keras.distribution.DataParallel(devices=devices, auto_shard_dataset=False)
        )
        for optimizer in OPTIMIZERS_OF.get(name, ("sgd", "adamw")):
            words = optimizer.split("_")
            update, norm = train(words[0], micro_batches, kind_of(words))
            arrays[f"{name}/{optimizer}"] = update
            arrays[f"{name}/{optimizer}_norm"] = norm
    arrays["masks"] = masks_of(mask_trainer(micro_batches=2), 2)
    arrays["num_devices"] = jax.device_count()
    np.savez(out, **arrays)


if __name__ == "__main__":
    main(*sys.argv[1:])
