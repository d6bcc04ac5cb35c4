"""Settings of how and on what the work is done, for every command that trains."""

from training.command.settings import COUNT, setting

STRATEGIES = ("auto", "one", "mirrored", "multiworker")
PRECISIONS = ("float32", "mixed_bfloat16", "mixed_float16")
XLA = {"auto": "auto", "on": True, "off": False}  # as the trainer takes the choices of --xla
SWITCHES = tuple(XLA)


def strategy():
    """Returns the field `strategy`."""
    return setting("auto", "How devices share the work.", one_of=STRATEGIES, counts=False)


def precision():
    """Returns the field `precision`."""
    return setting("float32", "Precision of the work.", one_of=PRECISIONS, may_change=True)


def xla():
    """Returns the field `xla`."""
    text = "Whether XLA compiles forward and backward pass."
    return setting("auto", text, one_of=SWITCHES, counts=False)


def micro_batches():
    """Returns the field `micro_batches`."""
    text = "Parts, to be summed, that a replica's rows are cut into to save memory."
    return setting(1, text, rule=COUNT, may_change=True)


def remat():
    """Returns the field `remat`."""
    text = "Whether the backward pass computes each block again, to save memory; costs a third of "
    return setting(False, f"{text}the time.", counts=False)


def deterministic():
    """Returns the field `deterministic`."""
    text = "Whether only operations are used that give the same bits every time."
    return setting(False, text, counts=False)
