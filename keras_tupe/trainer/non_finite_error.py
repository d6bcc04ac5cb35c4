"""The end of a training that went wrong."""


class NonFiniteError(ArithmeticError):
    """A loss or a gradient that is not finite. The weights are those before the step.

    Args:
        step: number of the (last) bad step, from 0.
        skipped_steps: number of bad steps so far.

    Attributes:
        step: the same.
        skipped_steps: the same.
    """

    def __init__(self, step, skipped_steps):
        super().__init__(
            f"The loss or its gradient is not finite at step {step}. The weights are those from "
            "before it. Look at the rows of that batch, lower the learning rate, or tolerate a few "
            f"such steps with `skip_bad_steps`. Received: {skipped_steps} bad steps so far"
        )
        self.step = step
        self.skipped_steps = skipped_steps
