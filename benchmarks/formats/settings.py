"""The settings of `benchmarks.formats`."""

import dataclasses

from benchmarks.harness.checks import Lists, wrong_items
from training.command.settings import setting
from training.command.without_keras import method_names


@dataclasses.dataclass(frozen=True)
class Settings(Lists):
    """Settings of `benchmarks.formats`."""

    positions: tuple = setting(("all",), "Position methods, or all.")
    out: str = setting("benchmarks/results", "Folder of formats.json.")

    def is_all(self):
        """Returns whether all methods are asked for."""
        return self.positions == ("all",)

    def methods(self):
        """Returns the names of the methods."""
        return method_names() if self.is_all() else self.positions

    def problems(self):
        """Returns a sentence for each setting that cannot be."""
        return [] if self.is_all() else wrong_items(self, {"positions": method_names()})
