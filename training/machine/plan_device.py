"""The device of a plan."""

import dataclasses

from training.machine.cost import H200, TWO_CORES
from training.machine.facts import machine_facts


def find_device(settings, precision):
    """Returns the `Device` that was found, and the kind of the machine, a dictionary.

    Args:
        settings: a `Settings` of `training.experiment`; its `peak_flops` and `utilisation` win.
        precision: of the work.

    Raises:
        ValueError: if the device cannot be used.
    """
    machine, peak = machine_facts(precision)
    like = TWO_CORES if machine["gpu"] is None else H200
    name = machine["gpu"] or f"{machine['cpu']}, {machine['cores']} cores"
    device = dataclasses.replace(
        like,
        name=f"{name}, {precision}",
        peak_flops=settings.peak_flops or peak,
        utilisation=settings.utilisation or like.utilisation,
    )
    return device, machine
