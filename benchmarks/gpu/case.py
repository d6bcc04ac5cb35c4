"""Train steps of one model on the first device, in a process of its own."""

import contextlib
import time

import keras

from benchmarks.gpu.outcome import outcome
from benchmarks.harness.process import answer
from benchmarks.harness.provenance import versions
from benchmarks.training import batch as batches
from benchmarks.training.model import new_trainer


def work(job, tick):
    """Trains a new model with `fit` and times its steps.

    Args:
        job: dictionary with `position`, `sizes`, `vocabulary_size`, `batch_size`, `length`,
            `precision` and `steps`.
        tick: called at the end.

    Returns:
        A dictionary: `ms`, median of a step, and `ms_quartiles`; `first_loss` and `last_loss`;
        `peak_memory_mib` of the device since the start of the process, weights and optimizer
        included, or `None` where the backend does not know it; `device` and `versions`.
    """
    scope, facts = _on_jax() if keras.backend.backend() == "jax" else _on_tensorflow()
    with scope:
        trainer = new_trainer(job, xla=True)
    clock = _Clock(trainer)
    trainer.fit(_Batches(job), shuffle=False, verbose=0, callbacks=[clock])
    tick()
    device, peak = facts()
    return {**outcome(clock.seconds, clock.losses, peak), "device": device, "versions": versions()}


def _on_jax():
    """Returns in what scope to train, and a function: name and peak memory of the device."""
    import jax

    def facts():
        device = jax.local_devices()[0]
        return device.device_kind, (device.memory_stats() or {}).get("peak_bytes_in_use")

    return contextlib.nullcontext(), facts


def _on_tensorflow():
    """Does `_on_jax` for the first GPU, or the CPU, under a `MirroredStrategy`."""
    import tensorflow as tf

    gpus = tf.config.list_physical_devices("GPU")

    def facts():
        if not gpus:
            return "cpu", None
        name = tf.config.experimental.get_device_details(gpus[0]).get("device_name", "GPU")
        return name, tf.config.experimental.get_memory_info("GPU:0")["peak"]

    return tf.distribute.MirroredStrategy(["GPU:0" if gpus else "CPU:0"]).scope(), facts


class _Batches(keras.utils.PyDataset):
    """The same batch in every step."""

    def __init__(self, job):
        super().__init__()
        self._steps = batches.WARM_UP_STEPS + job["steps"]
        self._batch = batches.keras_batch(job)

    def __len__(self):
        return self._steps

    def __getitem__(self, index):
        return self._batch


class _Clock(keras.callbacks.Callback):
    """Times steps. The trainer looks at the loss of each step, so a step ends when it is done."""

    def __init__(self, trainer):
        super().__init__()
        self._trainer = trainer
        self.seconds, self.losses = [], []

    def on_train_batch_begin(self, batch, logs=None):
        self._started = time.perf_counter()

    def on_train_batch_end(self, batch, logs=None):
        self.losses.append(self._trainer.last_step["batch_loss"])
        self.seconds.append(time.perf_counter() - self._started)


if __name__ == "__main__":
    answer(work)
