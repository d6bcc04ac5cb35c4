"""Keras's `fit` on one batch, one turn at a time. Runs in environments without this package."""

import keras

from benchmarks.harness.process import Turns
from benchmarks.training import batch as batches

POLICIES = {"float32": "float32", "bfloat16": "mixed_bfloat16"}
STEPS = 10**6  # more than anyone asks for


def fit_in_turns(model, job, inputs, labels, weights, facts):
    """Trains a compiled model with `fit`, as its user does, when standard input asks for it.

    The process ends with standard input.

    Args:
        model: a compiled Keras model whose weights and optimizer state exist.
        job: dictionary with `steps_per_turn`.
        inputs, labels, weights: arrays of the batch.
        facts: as in `Turns`.
    """
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        rows = tf.data.Dataset.from_tensors((inputs, labels, weights)).repeat()
    else:
        import grain  # what KerasHub takes where there is no TensorFlow

        rows = grain.MapDataset.source([(inputs, labels, weights)]).repeat()
    turns = Turns(facts, batches.WARM_UP_STEPS, job["steps_per_turn"])
    model.fit(rows, steps_per_epoch=STEPS, verbose=0, shuffle=False, callbacks=[_Asked(turns)])


class _Asked(keras.callbacks.Callback):
    """Begins a turn before a step and ends it when the loss is there."""

    def __init__(self, turns):
        super().__init__()
        self._turns, self._first = turns, 0

    def on_train_batch_begin(self, batch, logs=None):
        self._first = batch
        self._turns.begin()

    def on_train_batch_end(self, batch, logs=None):
        loss = float(logs["loss"])  # waits for JAX
        self._turns.end({"loss": loss}, steps=batch + 1 - self._first)
