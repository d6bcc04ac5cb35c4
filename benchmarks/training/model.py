"""The model of this package that is trained, in its `Trainer`; any backend of that."""

import keras

from benchmarks.training import batch as batches
from benchmarks.training.fit_turns import POLICIES
from keras_tupe import TupeBackbone, TupeMaskedLM
from keras_tupe.trainer import Trainer, adamw


def new_trainer(job, **options):
    """Returns the compiled `Trainer` of a new model, under a new global precision policy.

    Args:
        job: dictionary with `position`, `sizes`, `vocabulary_size`, `length` and `precision`.
        **options: arguments of `Trainer`.
    """
    keras.utils.set_random_seed(1)
    keras.config.set_dtype_policy(POLICIES[job["precision"]])
    backbone = TupeBackbone(
        job["vocabulary_size"],
        **job["sizes"],
        position=job["position"],
        max_sequence_length=job["length"],
        dropout=batches.DROPOUT,
    )
    trainer = Trainer(TupeMaskedLM(backbone), **options)
    trainer.compile(adamw(batches.LEARNING_RATE))
    return trainer
