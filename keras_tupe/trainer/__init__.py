"""How models of this package are trained."""

from keras_tupe.trainer.linear_warmup_decay import LinearWarmupDecay
from keras_tupe.trainer.non_finite_error import NonFiniteError
from keras_tupe.trainer.optimizer import adamw
from keras_tupe.trainer.trainer import Trainer

__all__ = ["LinearWarmupDecay", "NonFiniteError", "Trainer", "adamw"]
