"""The learning-rate schedule of the original Transformer."""

import keras
from keras import ops

from keras_tupe.layers._checks import check_positive_integers


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
        check_positive_integers(warmup_steps=warmup_steps)
        if not peak > 0:
            raise ValueError(f"`peak` must be a positive learning rate. Received: peak={peak!r}")
        self.peak = peak
        self.warmup_steps = warmup_steps

    def __call__(self, step):
        number = ops.cast(step, "float32") + 1
        rising = number / self.warmup_steps
        return self.peak * ops.minimum(rising, ops.sqrt(self.warmup_steps / number))

    def get_config(self):
        return {"peak": self.peak, "warmup_steps": self.warmup_steps}
