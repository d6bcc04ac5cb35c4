"""A model of this package in its trainer, or KerasHub's BERT in plain `fit`, on TensorFlow."""

import time

import keras
import keras_hub
import numpy as np
import tensorflow as tf

from benchmarks.harness.process import serve
from benchmarks.harness.provenance import versions
from benchmarks.training import batch as batches
from keras_tupe import TupeBackbone, TupeMaskedLM
from keras_tupe.data import Masking, Rows, tf_dataset
from keras_tupe.trainer import Trainer, adamw

POLICIES = {"float32": "float32", "bfloat16": "mixed_bfloat16"}
ROWS = 4096  # in memory, for the pipeline


def prepare(job):
    """Returns the train step of a new model, and the versions.

    Args:
        job: dictionary with `position` (name of a method, `None` for KerasHub's BERT), `sizes`,
            `vocabulary_size`, `batch_size`, `length`, `precision`, and `pipeline`: whether rows
            come through `keras_tupe.data.tf_dataset`, and the step returns the seconds it waited
            for them as `wait`.
    """
    keras.utils.set_random_seed(1)
    keras.config.set_dtype_policy(POLICIES[job["precision"]])
    is_peer = job["position"] is None
    model, function = _peer(job) if is_peer else _ours(job)
    facts = {"versions": {**versions(), "keras-hub": keras_hub.__version__}}
    facts["jit_compile"] = str(model.jit_compile) if is_peer else f"xla={model.xla}"
    if job["pipeline"]:
        return _waiting_step(job, function), facts
    iterator = iter(_dataset(job, is_peer))
    return lambda: {"loss": float(function(iterator)["loss"])}, facts


def _ours(job):
    backbone = TupeBackbone(
        job["vocabulary_size"],
        **job["sizes"],
        position=job["position"],
        max_sequence_length=job["length"],
        dropout=batches.DROPOUT,
    )
    trainer = Trainer(TupeMaskedLM(backbone), train_metrics=False)
    trainer.compile(adamw(batches.LEARNING_RATE))
    return trainer, trainer.make_train_function()


def _peer(job):
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
    model.compile(optimizer, loss, weighted_metrics=[])
    model.make_train_function()
    return model, model.train_function


def _dataset(job, is_peer):
    arrays = batches.batch(job["vocabulary_size"], job["batch_size"], job["length"])
    token_ids, mask_positions, labels, weights = arrays
    inputs = {
        "token_ids": token_ids,
        "padding_mask": np.ones_like(token_ids),
        "mask_positions": mask_positions,
    }
    if is_peer:
        inputs["segment_ids"] = np.zeros_like(token_ids)
    return tf.data.Dataset.from_tensors((inputs, labels, weights)).repeat()


def _waiting_step(job, function):
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
        return {"loss": float(function(iter([batch]))["loss"]), "wait": wait}

    return step


if __name__ == "__main__":
    serve(prepare, batches.WARM_UP_STEPS)
