"""One compiled trainer for all runs of a grid: tracing takes as long as a hundred small steps."""

import keras
from keras import ops

from keras_tupe._keras_private.layers import track_variable
from keras_tupe.trainer import Trainer, adamw


class SettableWarmupDecay(keras.optimizers.schedules.LearningRateSchedule):
    """`LinearWarmupDecay` whose numbers can be set anew after the step was compiled.

    `numbers` are variables of the optimizer's state (peak, total steps, warm-up steps), so that a
    compiled step sees what they are now, on every backend.
    """

    def __init__(self):
        super().__init__()
        self.numbers = [
            keras.Variable(1.0, dtype="float32", trainable=False, autocast=False, name=name)
            for name in ("peak", "total_steps", "warmup_steps")
        ]

    def __call__(self, step):
        peak, total, warmup = (number.value for number in self.numbers)
        step = ops.cast(step, "float32")
        falling = (total - step) / (total - warmup)
        rising = ops.where(warmup > 0, (step + 1) / ops.maximum(warmup, 1.0), falling)
        return peak * ops.maximum(ops.minimum(falling, rising), 0.0)


class KeptTrainer:
    """A trainer that begins again with the weights of another model, and is not compiled again.

    Everything that a compiled step reads is a variable: weights, optimizer, counters, seeds of
    dropout, and the numbers of the learning rate. So a run does not depend on those before it.

    The arguments are a new model, a Keras loss, and keyword arguments of `adamw` and of `Trainer`.
    """

    def __init__(self, model, loss, optimizer, trainer):
        self.model = model
        self.key = run_key(model, loss, optimizer)
        schedule = SettableWarmupDecay()
        made = adamw(schedule, **optimizer)
        for number in schedule.numbers:
            track_variable(made, number)
        self.trainer = Trainer(model, **trainer)
        self.trainer.compile(made, loss=loss)
        self._numbers = schedule.numbers
        state = self.trainer.state_variables
        self._counters = [
            (variable, ops.convert_to_numpy(variable.value))
            for name, variable in state.items()
            if name.startswith("trainer/")
        ]
        set_before = {id(number) for number in self._numbers}
        self._optimizer_state = [
            variable
            for name, variable in state.items()
            if name.startswith("optimizer/") and id(variable) not in set_before
        ]

    def begin(self, model, schedule):
        """Gets ready for a run, as if all had been made anew.

        Args:
            model: a new model of the same `run_key`; its weights and dropout seeds are taken.
            schedule: a `LinearWarmupDecay`.
        """
        if model is not self.model:
            for ours, theirs in zip(self.model.variables, model.variables, strict=True):
                ours.assign(theirs.value)
        for variable in self._optimizer_state:
            variable.assign(ops.zeros_like(variable.value))
        for variable, value in self._counters:
            variable.assign(value)
        numbers = (schedule.peak, schedule.total_steps, schedule.warmup_steps)
        for variable, value in zip(self._numbers, numbers, strict=True):
            variable.assign(value)


def run_key(model, loss, optimizer):
    """Returns what two runs must have in common to share a compiled step, or `None` if unknown."""
    try:
        config = {**model.get_config(), "name": None}
        kept = [weight.constraint for weight in model.trainable_weights]
        return type(model), config, type(loss), {**loss.get_config(), "name": None}, optimizer, kept
    except NotImplementedError:
        return None
