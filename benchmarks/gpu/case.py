"""Train steps of one model on what JAX finds. A process of its own: `benchmarks.gpu` starts it."""

import statistics
import time

import jax
import keras

from benchmarks.harness.process import answer
from benchmarks.harness.provenance import versions
from benchmarks.harness.rounds import quartiles
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
        included, or `None` where JAX does not know it; `device` and `versions`.
    """
    trainer = new_trainer(job)
    clock = _Clock(trainer)
    trainer.fit(_Batches(job), shuffle=False, verbose=0, callbacks=[clock])
    milliseconds = [1e3 * seconds for seconds in clock.seconds[batches.WARM_UP_STEPS :]]
    tick()
    device = jax.local_devices()[0]
    statistics_of_memory = device.memory_stats() or {}
    peak = statistics_of_memory.get("peak_bytes_in_use")
    return {
        "ms": statistics.median(milliseconds),
        "ms_quartiles": quartiles(milliseconds),
        "first_loss": clock.losses[0],
        "last_loss": clock.losses[-1],
        "peak_memory_mib": None if peak is None else peak / 2**20,
        "device": device.device_kind,
        "versions": versions(),
    }


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
