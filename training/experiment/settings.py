"""The settings of `training.experiment`."""

import dataclasses
import os
import pathlib

from keras_tupe import data
from training.command.checks import PRECISIONS
from training.command.settings import setting
from training.experiment.checks import STRATEGIES, find_problems
from training.experiment.definition import names
from training.experiment.schema import SCALES
from training.finetune_glue.protocol import TASKS
from training.machine import settings as machine


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of `training.experiment`. What is left out is as the experiment's scale says."""

    name: str | None = setting(
        None,
        f"Experiment: {', '.join(names())}, or the path of a .toml file of your own.",
        positional=True,
    )
    scale: str = setting("laptop", f"How large it is: {', '.join(SCALES)}.")
    data: str | None = setting(
        None, "Folder of rows, made by `python -m training.prepare`, to pre-train on."
    )
    out: str | None = setting(
        None, "Folder of all runs and of the report; the same command continues what is there."
    )
    glue: str | None = setting(None, "Folder of GLUE's files, or tfds, if GLUE is asked.")
    squad_train: str | None = setting(None, "SQuAD's training file, if SQuAD is asked.")
    squad_dev: str | None = setting(None, "SQuAD's dev file.")
    preset: str | None = setting(
        None, "Folder of the preset that gets another method, where the experiment is a graft."
    )
    plan: bool = setting(False, "Whether only the plan is printed; nothing runs.")
    list: bool = setting(False, "Whether the experiments are listed; nothing runs.")
    # === Other than the scale says ===
    steps: int | None = setting(None, "Steps of pre-training, >= 1.")
    seeds: int | None = setting(None, "Runs of pre-training of each method, >= 1.")
    tasks: tuple = setting((), f"GLUE tasks, of {', '.join(TASKS)}.")
    precision: str | None = setting(None, f"Precision of the work: {', '.join(PRECISIONS)}.")
    # === Machine ===
    strategy: str = setting("auto", f"How devices share the work: {', '.join(STRATEGIES)}.")
    xla: str = machine.xla()
    peak_flops: float | None = setting(
        None, "Peak of one device in --precision, FLOP/s > 0. Default: known or measured."
    )
    utilisation: float | None = setting(
        None,
        "Share of the peak that the plan reckons with, above 0 to 1. Default: 0.35 on a "
        "GPU, 0.45 on a CPU.",
    )

    def problems(self):
        """Returns a sentence for each mistake."""
        return find_problems(self)

    def overrides(self):
        """Returns what the command line changes in the scale, a dictionary of JSON values."""
        given = {name: getattr(self, name) for name in ("steps", "seeds", "precision")}
        given["tasks"] = list(self.tasks)
        return {name: value for name, value in given.items() if value}

    def identity(self):
        """Returns what one folder must be of, a dictionary of JSON values."""
        name = os.path.splitext(os.path.basename(self.name))[0]
        identity = {"experiment": name, "scale": self.scale, **self.overrides()}
        if self.preset is not None:
            files = sorted(pathlib.Path(self.preset).glob("*"))
            kept = [file for file in files if file.name.endswith((".weights.h5", "config.json"))]
            identity["preset"] = {file.name: data.file_hash(file) for file in kept}
        return identity
