"""How models of this package are trained."""

from keras_tupe.trainer.linear_warmup_decay import LinearWarmupDecay
from keras_tupe.trainer.optimizer import adamw

__all__ = ["LinearWarmupDecay", "adamw"]
