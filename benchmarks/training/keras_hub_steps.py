"""KerasHub's BERT in plain `fit`, on TensorFlow or JAX. Runs in the peer's environment too."""

import importlib.metadata
import json
import platform
import sys

import keras
import keras_hub
import numpy as np

from benchmarks.training import batch as batches
from benchmarks.training.fit_turns import POLICIES, fit_in_turns


def run(job):
    """Trains a new model in turns; see `fit_in_turns`.

    Args:
        job: dictionary with `sizes`, `vocabulary_size`, `batch_size`, `length`, `precision`,
            `steps_per_turn`, and `jit_compile`: whether XLA compiles the step.
    """
    keras.utils.set_random_seed(1)
    keras.config.set_dtype_policy(POLICIES[job["precision"]])
    backbone = keras_hub.models.BertBackbone(
        vocabulary_size=job["vocabulary_size"],
        **job["sizes"],
        dropout=batches.DROPOUT,
        max_sequence_length=job["length"],
    )
    model = keras_hub.models.BertMaskedLM(backbone)
    optimizer = keras.optimizers.AdamW(
        batches.LEARNING_RATE, weight_decay=0.01, global_clipnorm=1.0
    )
    optimizer.build(model.trainable_variables)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer, loss, weighted_metrics=[], jit_compile=job["jit_compile"])
    inputs, labels, weights = batches.keras_batch(job)
    inputs["segment_ids"] = np.zeros_like(inputs["token_ids"])
    fit_in_turns(model, job, inputs, labels, weights, lambda: _facts(model))


def _facts(model):
    backend = keras.backend.backend()
    names = ("keras", "keras-hub", "numpy", backend)
    versions = {name: importlib.metadata.version(name) for name in names}
    return {
        "versions": {"python": platform.python_version(), "backend": backend, **versions},
        "jit_compile": model.jit_compile,
    }


if __name__ == "__main__":
    run(json.loads(sys.argv[1]))
