"""A model of this package in its `Trainer`, on TensorFlow."""

import json
import sys
import time

import numpy as np

from benchmarks.harness.process import serve
from benchmarks.harness.provenance import versions
from benchmarks.training import batch as batches
from benchmarks.training.fit_turns import fit_in_turns
from benchmarks.training.model import new_trainer
from keras_tupe.data import Masking, Rows, tf_dataset

ROWS = 4096  # in memory, for the pipeline
XLA = {"auto": "auto", "on": True, "off": False}


def run(job):
    """Trains a new model in turns; see `fit_in_turns`.

    Args:
        job: dictionary with `position`, `sizes`, `vocabulary_size`, `batch_size`, `length`,
            `precision`, `steps_per_turn`, `xla` (`"auto"`, `"on"` or `"off"`), and `pipeline`:
            whether rows come through `keras_tupe.data.tf_dataset`, and a step returns the seconds
            it waited for them as `wait`.
    """
    if job["pipeline"]:
        serve(_waiting_step, batches.WARM_UP_STEPS)
    else:
        trainer = _trainer(job)
        fit_in_turns(trainer, job, *batches.keras_batch(job), lambda: _facts(trainer))


def _trainer(job):
    return new_trainer(job, xla=XLA[job["xla"]])


def _facts(trainer):
    return {"versions": versions(), "xla": trainer.xla}


def _waiting_step(job):
    trainer = _trainer(job)
    generator = np.random.default_rng(0)
    first = batches.FIRST_WORD
    shape = (ROWS, job["length"])
    token_ids = generator.integers(first, job["vocabulary_size"], shape, "int32")
    masking = Masking(job["vocabulary_size"], mask_id=4, pad_id=0, special_ids=(1, 2, 3))
    rows = Rows(token_ids, masking, batch_size=job["batch_size"], seed=1)
    iterator = iter(tf_dataset(rows))

    def step():
        started = time.perf_counter()
        batch = next(iterator)
        wait = time.perf_counter() - started
        return {"loss": trainer.train_on_batch(*batch), "wait": wait}

    return step, _facts(trainer)


if __name__ == "__main__":
    run(json.loads(sys.argv[1]))
