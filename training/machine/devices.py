"""The devices of a run: what differs between TensorFlow and JAX, and between one and many."""

import contextlib
import math
import os
import sys

import keras
import numpy as np

from keras_tupe import data
from keras_tupe.trainer import cluster, join, make_strategy


def make_machine(strategy, deterministic=False):
    """Returns the machine for `--strategy`. To be called before anything is computed.

    Says on standard error what somebody who asked for several devices may not expect.

    Raises:
        ValueError: if `TF_CONFIG` is wrong or missing.
    """
    if keras.backend.backend() == "tensorflow":
        machine = TensorFlowMachine(strategy, deterministic)
    else:
        machine = JaxMachine(strategy)
    found = no_gpu(strategy, machine.num_replicas)
    if found:
        print(found, file=sys.stderr)
    return machine


def no_gpu(strategy, num_replicas):
    """Returns a sentence if several devices were asked for and there is no GPU, else `None`.

    Args:
        strategy: the setting.
        num_replicas: devices that share a batch.
    """
    if strategy != "mirrored" or has_gpu():
        return None
    replicas = "one replica" if num_replicas == 1 else f"{num_replicas} replicas"
    return f"--strategy mirrored: no GPU was found, so {replicas} of the CPU did the work."


def has_gpu():
    """Returns whether the backend sees a device that is not a CPU."""
    return any("cpu" not in device.lower() for device in keras.distribution.list_devices())


class TensorFlowMachine:
    """Devices behind a strategy of `tf.distribute`.

    Attributes:
        num_workers, worker: number of processes, and of this one, from 0.
        num_replicas: devices that share a batch, of all workers.
        losses: exceptions that a lost worker causes in the others.
    """

    def __init__(self, strategy, deterministic):
        import tensorflow as tf

        if deterministic:
            tf.config.experimental.enable_op_determinism()
        self._strategy = make_strategy(strategy)
        self.num_replicas = self._strategy.num_replicas_in_sync
        self.num_workers, self.worker = 1, 0
        self.losses = ()
        if isinstance(self._strategy, tf.distribute.MultiWorkerMirroredStrategy):
            workers, self.worker = cluster(os.environ["TF_CONFIG"])
            self.num_workers = len(workers)
            self.losses = (
                tf.errors.UnavailableError,
                tf.errors.AbortedError,
                tf.errors.CancelledError,
                tf.errors.DeadlineExceededError,
                tf.errors.FailedPreconditionError,
                tf.errors.InternalError,
            )

    def scope(self):
        """The scope in which model, trainer and optimizer are made."""
        return self._strategy.scope()

    def training(self, rows, start_step, num_steps):
        """Batches `start_step` to `start_step + num_steps - 1`, for `fit`."""
        if self.num_replicas == 1:
            return data.tf_dataset(rows, start_step, num_steps)
        return self._distributed(rows, start_step, num_steps, data.tf_dataset)

    def held_out(self, rows, num_batches):
        """The first batches of an evaluation."""
        if self.num_replicas == 1:
            return data.tf_evaluation_dataset(rows).take(num_batches)

        def make(part, start, count):
            return data.tf_evaluation_dataset(part).skip(start).take(count)

        return self._distributed(rows, 0, num_batches, make)

    def gathered(self, numbers):
        """Returns an array with a row of numbers for each worker."""
        if self.num_workers == 1:
            return np.array([numbers])
        import tensorflow as tf

        values = self._strategy.experimental_distribute_values_from_function(
            lambda _: tf.constant([numbers], "int64")
        )
        return self._strategy.gather(values, axis=0).numpy()

    def stops(self, trainer, wants, together):
        """Whether the run ends after this step.

        Args:
            trainer: the `Trainer`.
            wants: whether this worker was asked to end.
            together: whether this is a step at which all workers may talk.
        """
        if wants and self.num_workers == 1:
            trainer.stop_requested = True
        elif wants and not trainer.stop_requested:
            trainer.request_stop()  # the next step tells all workers
        return trainer.stop_requested

    def _distributed(self, rows, start_step, num_steps, make):
        """Each replica's rows as a data set of its own: parts of one worker come in turn."""
        import tensorflow as tf

        each = self.num_replicas // self.num_workers

        def worker_rows(context):
            first = context.input_pipeline_id * each
            parts = [
                make(rows.shard(first + number, self.num_replicas), start_step, num_steps)
                for number in range(each)
            ]
            if each == 1:
                return parts[0]
            choices = tf.data.Dataset.range(each).repeat(num_steps)
            return tf.data.Dataset.choose_from_datasets(parts, choices)

        return self._strategy.distribute_datasets_from_function(worker_rows)


class JaxMachine:
    """Devices of JAX, a batch spread over all of them by `keras.distribution.DataParallel`.

    Several processes find each other by the `TF_CONFIG` of TensorFlow.
    """

    losses = ()

    def __init__(self, strategy):
        import jax

        config = os.environ.get("TF_CONFIG")
        self.num_workers, self.worker = 1, 0
        if strategy == "multiworker" or (config and strategy == "auto"):
            workers, self.worker = join(config)
            self.num_workers = len(workers)
            if jax.config.jax_platforms == "cpu" or os.environ.get("JAX_PLATFORMS") == "cpu":
                jax.config.update("jax_cpu_collectives_implementation", "gloo")
            jax.distributed.initialize(
                workers[0],
                self.num_workers,
                self.worker,
                initialization_timeout=110,
                heartbeat_timeout_seconds=30,  # after which a worker is lost
            )
        self.num_replicas = 1 if strategy == "one" else jax.device_count()
        if self.num_replicas > 1:
            keras.distribution.set_distribution(
                keras.distribution.DataParallel(auto_shard_dataset=False)
            )

    def scope(self):
        """Nothing needs a scope here."""
        return contextlib.nullcontext()

    def training(self, rows, start_step, num_steps):
        """Batches `start_step` to `start_step + num_steps - 1`, for `fit`."""
        part = rows.shard(self.worker, self.num_workers)
        return _Batches(part.batch, start_step, num_steps)

    def held_out(self, rows, num_batches):
        """The first batches of an evaluation."""
        part = rows.shard(self.worker, self.num_workers)
        return _Batches(part.evaluation_batch, 0, num_batches)

    def gathered(self, numbers):
        """Returns an array with a row of numbers for each worker."""
        from jax.experimental import multihost_utils

        return np.reshape(multihost_utils.process_allgather(np.array(numbers)), (-1, len(numbers)))

    def stops(self, trainer, wants, together):
        """Whether the run ends after this step; see `TensorFlowMachine`."""
        if self.num_workers > 1:
            wants = together and bool(self.gathered([int(wants)]).any())
        return wants


class _Batches(keras.utils.PyDataset):
    """Batches by number, made by two threads ahead of their use."""

    def __init__(self, make_batch, start_step, num_steps):
        super().__init__(workers=2, max_queue_size=8)
        self._make_batch = make_batch
        self._start_step = start_step
        self._num_steps = num_steps

    @property
    def num_batches(self):
        return self._num_steps

    def __getitem__(self, index):
        return self._make_batch(self._start_step + index)


def rows_per_part(batch_size, machine, micro_batches):
    """Returns how many rows one device computes at a time.

    Raises:
        ValueError: if the parts of a batch would not be equal.
    """
    parts = machine.num_replicas * micro_batches
    if batch_size % parts:
        near = math.ceil(batch_size / parts) * parts
        raise ValueError(
            "--batch-size must be divisible by the number of devices times --micro-batches, "
            f"{machine.num_replicas} x {micro_batches}; the next is {near}. "
            f"Received: batch_size={batch_size}"
        )
    return batch_size // parts
