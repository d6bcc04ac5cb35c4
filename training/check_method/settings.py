"""The settings of `training.check_method`."""

import dataclasses
import pathlib

from training.command.kinds import nearest
from training.command.settings import setting
from training.command.without_keras import method_names


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of `training.check_method`."""

    method: str | None = setting(
        None, "Python file of the method, or the name of one of the package's.", positional=True
    )
    only: str = setting("", "Check only the promises whose name holds this text.")

    def problems(self):
        """Returns a sentence for each mistake."""
        if self.method is None:
            return ["METHOD must be given: a Python file, or a name. Received: nothing"]
        if self.method.endswith(".py") and not pathlib.Path(self.method).is_file():
            return [f"METHOD must be an existing Python file. Received: {self.method!r}"]
        if not self.method.endswith(".py") and self.method not in method_names():
            return [
                "METHOD must be a Python file or a positional method; the nearest is "
                f"{nearest(self.method, method_names())!r}, and `keras-tupe methods` lists all. "
                f"Received: {self.method!r}"
            ]
        return []
