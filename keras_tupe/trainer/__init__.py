"""Exact training: one update for one batch, on however many devices and machines.

For whoever trains for hours or on several devices: `Trainer` works by `compile` and `fit` like any
Keras model, `Checkpoints` let a stopped run go on to the bit, and `make_strategy` finds the
devices.
"""

from keras_tupe.trainer.checkpoints import Checkpoints
from keras_tupe.trainer.flops import step_flops
from keras_tupe.trainer.loop import Loop
from keras_tupe.trainer.optimizer import adamw
from keras_tupe.trainer.schedules import InverseSquareRoot, LinearWarmupDecay
from keras_tupe.trainer.strategies import cluster, join, make_strategy
from keras_tupe.trainer.trainer import NonFiniteError, Trainer
from keras_tupe.trainer.training_state import read_state, write_state

__all__ = [
    "Checkpoints",
    "InverseSquareRoot",
    "LinearWarmupDecay",
    "Loop",
    "NonFiniteError",
    "Trainer",
    "adamw",
    "cluster",
    "join",
    "make_strategy",
    "read_state",
    "step_flops",
    "write_state",
]
