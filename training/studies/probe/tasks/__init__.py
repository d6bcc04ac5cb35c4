"""The tasks of probes by name, one file each: what is asked of a row."""

import importlib
import pkgutil

from training.command.settings import nearest
from training.studies.probe.tasks._task import Task

TASKS = {
    module.name: importlib.import_module(f"{__name__}.{module.name}").TASK
    for module in pkgutil.iter_modules(__path__)
    if not module.name.startswith("_")
}


def get(name):
    """Returns a `Task`.

    Raises:
        ValueError: if there is none of that name; the nearest name is suggested.
    """
    if name in TASKS:
        return TASKS[name]
    raise ValueError(
        f"A task of probes must be one of {list(TASKS)}; the nearest is {nearest(name, TASKS)!r}. "
        f"Received: {name!r}"
    )


__all__ = ["TASKS", "Task", "get"]
