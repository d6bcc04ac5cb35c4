"""The settings of `training.gallery`."""

import dataclasses
import pathlib

from training.command.checks import no_folder
from training.command.settings import setting
from training.command.without_keras import method_names as known_methods
from training.command.without_keras import without_keras
from training.quickstart.settings import method_names

with without_keras():
    from keras_tupe.models.sizes import SIZES


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of the gallery."""

    positions: str = setting("all", "Positional methods or .py files, or all.", by_commas=True)
    steps: int = setting(600, "Training steps of each method, >= 1.")
    size: str = setting("tiny", f"Size of the encoders: {', '.join(SIZES)}.")
    seed: int = setting(0, "Seed of weights, order and masks, an integer >= 0.")
    corpus: str | None = setting(None, "Text file or folder; the installed packages' docstrings.")
    out: str = setting("docs/gallery", "Folder to write; others of the methods in it stay.")

    def names(self):
        """Returns the names of the methods."""
        return known_methods() if self.positions == "all" else method_names(self.positions)

    def problems(self):
        """Returns a sentence for each mistake."""
        found = []
        if self.steps < 1:
            found.append(f"--steps must be an integer >= 1. Received: {self.steps}")
        if self.size not in SIZES:
            found.append(f"--size must be one of {list(SIZES)}. Received: {self.size!r}")
        if self.seed < 0:
            found.append(f"--seed must be an integer >= 0. Received: {self.seed}")
        if self.corpus is not None and not pathlib.Path(self.corpus).exists():
            found.append(f"--corpus must exist. Received: {self.corpus!r}")
        found += no_folder(self.out)
        try:
            self.names()
        except ValueError as error:
            found.append(str(error))
        return found
