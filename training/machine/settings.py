"""Settings of how and on what the work is done, for every command that trains."""

from training.command.checks import PRECISIONS, STRATEGIES, SWITCHES
from training.command.settings import setting

XLA = {"auto": "auto", "on": True, "off": False}  # as the trainer takes the choices of --xla


def strategy():
    """Returns the field `strategy`."""
    return setting("auto", f"How devices share the work: {', '.join(STRATEGIES)}.")


def precision():
    """Returns the field `precision`."""
    return setting("float32", f"Precision of the work: {', '.join(PRECISIONS)}.")


def xla():
    """Returns the field `xla`."""
    return setting(
        "auto", f"Whether XLA compiles forward and backward pass: {', '.join(SWITCHES)}."
    )


def micro_batches():
    """Returns the field `micro_batches`."""
    return setting(
        1, "Parts that a replica's rows are cut into to save memory, >= 1; they are summed."
    )


def remat():
    """Returns the field `remat`."""
    return setting(
        False,
        "Whether the backward pass computes each block again, to save memory; costs a third of "
        "the time.",
    )


def deterministic():
    """Returns the field `deterministic`."""
    return setting(False, "Whether only operations are used that give the same bits every time.")
