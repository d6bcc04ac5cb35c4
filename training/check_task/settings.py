"""The settings of `training.check_task`."""

import dataclasses
import pathlib

from training.command.kinds import nearest
from training.command.settings import setting
from training.command.without_keras import task_names


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of `training.check_task`."""

    task: str | None = setting(
        None, "Python file of the task, or the name of one of the package's.", positional=True
    )
    only: str = setting("", "Check only the promises whose name holds this text.")

    def problems(self):
        """Returns a sentence for each mistake."""
        if self.task is None:
            return ["TASK must be given: a Python file, or a name. Received: nothing"]
        if self.task.endswith(".py") and not pathlib.Path(self.task).is_file():
            return [f"TASK must be an existing Python file. Received: {self.task!r}"]
        if not self.task.endswith(".py") and self.task not in task_names():
            return [
                "TASK must be a Python file or a task; the nearest is "
                f"{nearest(self.task, task_names())!r}. Expected one of {task_names()}. "
                f"Received: {self.task!r}"
            ]
        return []
