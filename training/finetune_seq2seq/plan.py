"""What follows the number of pairs: steps, warm-up, and when something is written."""

import dataclasses

from keras_tupe.trainer import InverseSquareRoot, LinearWarmupDecay

_EPOCHS = 10
_WARMUP_SHARE = 0.06


@dataclasses.dataclass(frozen=True)
class Plan:
    """How long is trained, and when something is written.

    Attributes:
        steps: optimizer steps.
        warmup_steps: steps in which the learning rate rises.
        valid_every, save_every, log_every: steps between two held-out losses, checkpoints, lines.
        schedule: learning rate, a function of the step.
    """

    steps: int
    warmup_steps: int
    valid_every: int
    save_every: int
    log_every: int
    schedule: object

    def saved_step_numbers(self):
        """Returns the steps after which there is a checkpoint, however often there is one: none."""
        return ()

    def is_validated(self, step):
        """Returns whether there is a held-out loss after so many steps."""
        return step > 0 and (step % self.valid_every == 0 or step == self.steps)


def plan_of(settings, batches):
    """Returns the `Plan` of a run.

    Args:
        settings: a `Settings` of `training.finetune_seq2seq`.
        batches: steps of an epoch.

    Raises:
        ValueError: if the warm-up does not fit the number of steps.
    """
    steps = settings.steps or (settings.epochs or _EPOCHS) * batches
    warmup = settings.warmup_steps
    if warmup is None:
        warmup = int(_WARMUP_SHARE * steps)
    if settings.schedule == "inverse_sqrt":
        warmup = max(warmup, 1)
        schedule = InverseSquareRoot(settings.learning_rate, warmup)
    elif warmup < steps:
        schedule = LinearWarmupDecay(settings.learning_rate, steps, warmup)
    else:
        raise ValueError(
            "--warmup-steps must be below the number of steps, after which the linear schedule "
            f"ends. Received: warmup_steps={warmup}, {steps} steps"
        )
    return Plan(
        steps,
        warmup,
        settings.valid_every or max(steps // 20, 1),
        settings.save_every,
        settings.log_every or max(steps // 100, 1),
        schedule,
    )
