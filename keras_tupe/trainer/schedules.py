"""Learning-rate schedules: TUPE's, and that of the original Transformer."""

import keras
from keras import ops

from keras_tupe.check import integer, number


@keras.saving.register_keras_serializable(package="keras_tupe")
class LinearWarmupDecay(keras.optimizers.schedules.LearningRateSchedule):
    """Learning rate that rises linearly from zero to a peak, then falls linearly to zero.

    Equation (Ke et al. 2021, Appendix D), at step t from 0, with W warm-up and T steps in all:

        rate(t) = peak * min((t + 1) / W, (T - t) / (T - W)),  not below 0

    Args:
        peak: highest learning rate, > 0.
        total_steps: number T of optimizer steps.
        warmup_steps: number W of them that rise, below T. 0 means no warm-up.

    Raises:
        ValueError: if `peak` is not positive, or the numbers of steps do not fit each other.

    Example:
        >>> schedule = LinearWarmupDecay(1.0, total_steps=10, warmup_steps=2)
        >>> [round(float(schedule(step)), 3) for step in (0, 1, 2, 9, 10)]
        [0.5, 1.0, 1.0, 0.125, 0.0]

    References:
        Ke, He, Liu. Rethinking Positional Encoding in Language Pre-training. ICLR 2021.
        https://arxiv.org/abs/2006.15595
    """

    def __init__(self, peak, total_steps, warmup_steps=0):
        super().__init__()
        number("peak", peak, above=0)
        integer("total_steps", total_steps)
        integer("warmup_steps", warmup_steps, 0, total_steps - 1)
        self.peak = peak
        self.total_steps = total_steps
        self.warmup_steps = warmup_steps

    def __call__(self, step):
        step = ops.cast(step, "float32")
        share = (self.total_steps - step) / (self.total_steps - self.warmup_steps)
        if self.warmup_steps:
            share = ops.minimum(share, (step + 1) / self.warmup_steps)
        return self.peak * ops.maximum(share, 0.0)

    def get_config(self):
        return {
            "peak": self.peak,
            "total_steps": self.total_steps,
            "warmup_steps": self.warmup_steps,
        }


@keras.saving.register_keras_serializable(package="keras_tupe")
class InverseSquareRoot(keras.optimizers.schedules.LearningRateSchedule):
    """Learning rate that rises linearly to a peak, then falls with the root of the step.

    Equation (Vaswani et al. 2017, eq. 3), at step t from 0, with W warm-up steps:

        rate(t) = peak * min((t + 1) / W, sqrt(W / (t + 1)))

    It does not know how many steps there will be, and never reaches zero. The source counts steps
    from 1, and names no peak: it has

        peak = 1 / sqrt(hidden_dim * W)

    which is 7.0e-4 for its base model, of width 512, with 4,000 warm-up steps.

    Args:
        peak: highest learning rate, > 0, that of the last warm-up step.
        warmup_steps: number W of steps that rise, at least 1.

    Raises:
        ValueError: if `peak` is not positive, or `warmup_steps` is not a positive integer.

    Example:
        >>> schedule = InverseSquareRoot(1.0, warmup_steps=4)
        >>> [round(float(schedule(step)), 3) for step in (0, 1, 3, 15, 399)]
        [0.25, 0.5, 1.0, 0.5, 0.1]

    References:
        Vaswani et al. Attention Is All You Need. 2017. https://arxiv.org/abs/1706.03762
    """

    def __init__(self, peak, warmup_steps):
        super().__init__()
        number("peak", peak, above=0)
        integer("warmup_steps", warmup_steps)
        self.peak = peak
        self.warmup_steps = warmup_steps

    def __call__(self, step):
        number = ops.cast(step, "float32") + 1
        rising = number / self.warmup_steps
        return self.peak * ops.minimum(rising, ops.sqrt(self.warmup_steps / number))

    def get_config(self):
        return {"peak": self.peak, "warmup_steps": self.warmup_steps}
