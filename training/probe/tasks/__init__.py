"""The tasks of probes by name, one file each: what is asked of a row."""

from training.command.without_keras import without_keras
from training.probe.tasks._task import Task

with without_keras():
    from keras_tupe._registry import look_up, records_in

TASKS = records_in(__name__, __path__, "TASK")


def get(name):
    """Returns a `Task`.

    Raises:
        ValueError: if there is none of that name; the nearest name is suggested.
    """
    return look_up(name, TASKS, "task of probes", "task")


__all__ = ["TASKS", "Task", "get"]
