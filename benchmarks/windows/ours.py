"""Train steps of a model of this package under a window; a process of its own."""

import keras
import numpy as np

from benchmarks.harness.process import serve
from benchmarks.harness.provenance import versions
from benchmarks.windows import rows
from keras_tupe import TupeBackbone, TupeMaskedLM
from keras_tupe.trainer import Trainer, adamw


def prepare(job):
    """Returns the train step of a new model, and the versions.

    Args:
        job: dictionary with `position`, `sizes`, `vocabulary_size`, `length`, `window`, `remat`.
    """
    keras.utils.set_random_seed(1)
    backbone = TupeBackbone(
        job["vocabulary_size"],
        **job["sizes"],
        position=job["position"],
        max_sequence_length=job["length"],
        dropout=rows.DROPOUT,
        attention_pattern="sliding_window",
        pattern_options={"window": job["window"], "num_global": 1},
    )
    trainer = Trainer(TupeMaskedLM(backbone), xla=False, remat=job["remat"])
    trainer.compile(adamw(rows.LEARNING_RATE))
    batch = _batch(job["vocabulary_size"], job["length"])
    trainer.train_on_batch(*_batch(job["vocabulary_size"], 64))  # the optimizer's state

    def step():
        return {"loss": trainer.train_on_batch(*batch)}

    return step, {"versions": versions()}


def _batch(vocabulary_size, length):
    token_ids, positions, labels = rows.one_text(vocabulary_size, length)
    inputs = {
        "token_ids": token_ids,
        "padding_mask": np.ones_like(token_ids),
        "mask_positions": positions,
    }
    return inputs, labels, np.ones(labels.shape, "float32")


if __name__ == "__main__":
    serve(prepare, rows.WARM_UP_STEPS)
