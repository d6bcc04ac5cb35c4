"""Settings of how and on what the work is done, for every command that trains."""

from training.command.checks import COUNT, PRECISIONS, STRATEGIES, SWITCHES
from training.command.settings import setting

XLA = {"auto": "auto", "on": True, "off": False}  # as the trainer takes the choices of --xla


def strategy():
    """Returns the field `strategy`."""
    return setting("auto", "How devices share the work.", one_of=STRATEGIES, counts=False)


def precision():
    """Returns the field `precision`."""
    return setting("float32", "Precision of the work.", one_of=PRECISIONS, may_change=True)


def xla():
    """Returns the field `xla`."""
    return setting(
        "auto", "Whether XLA compiles forward and backward pass.", one_of=SWITCHES, counts=False
    )


def micro_batches():
    """Returns the field `micro_batches`."""
    return setting(
        1,
        "Parts, to be summed, that a replica's rows are cut into to save memory.",
        rule=COUNT,
        may_change=True,
    )


def remat():
    """Returns the field `remat`."""
    return setting(
        False,
        "Whether the backward pass computes each block again, to save memory; costs a third of "
        "the time.",
        counts=False,
    )


def deterministic():
    """Returns the field `deterministic`."""
    return setting(
        False, "Whether only operations are used that give the same bits every time.", counts=False
    )
