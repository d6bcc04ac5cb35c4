"""The settings of an experiment of a paper, and what can be wrong with them."""

import dataclasses
import os
import pathlib

from training.command.checks import not_there
from training.command.settings import COUNT, POSITIVE, RATE, nearest, option, setting, wrong_fields
from training.finetune.glue.protocol import GLUE_TASKS, TASKS
from training.machine import settings as machine
from training.machine.settings import PRECISIONS
from training.machine.settings import STRATEGIES as _ALL_STRATEGIES
from training.studies.papers.definition import SCALES, find, names
from training.study.study import StudyOptions

STRATEGIES = tuple(name for name in _ALL_STRATEGIES if name != "multiworker")


def _is_glue(path):
    return path.lower() == "tfds" or os.path.isdir(path)


_SQUAD = ("squad", "fine-tunes on SQuAD", os.path.isfile, "a file of SQuAD v1.1 (JSON)")
_GLUE = "the folder of GLUE's official files, or tfds"
_GRAFT = "puts another method into a trained model"
# Setting -> part of a scale that needs it, what that does, whether a path is it, and its kind.
_DATA = {
    "data": ("pretrain", "pre-trains", os.path.isdir, "a folder made by training.prepare"),
    "glue": ("glue", "fine-tunes on GLUE", _is_glue, _GLUE),
    "squad_train": _SQUAD,
    "squad_dev": _SQUAD,
    "preset": ("preset", _GRAFT, os.path.isdir, "the folder of a preset"),
    "long_rows": (
        *("long_rows", "measures losses by position", os.path.isdir),
        "a folder made by training.prepare",
    ),
}


@dataclasses.dataclass(frozen=True)
class Settings(StudyOptions):
    """Settings of an experiment. What is left out is as the experiment's scale says."""

    name: str | None = setting(
        None,
        f"Experiment: {', '.join(names())}, or the path of a .toml file of your own.",
        positional=True,
    )
    scale: str = setting("laptop", "How large it is.", one_of=SCALES)
    data: str | None = setting(
        None, "Folder of rows, made by `python -m training.prepare`, to pre-train on."
    )
    glue: str | None = setting(None, "Folder of GLUE's files, or tfds, if GLUE is asked.")
    squad_train: str | None = setting(None, "SQuAD's training file, if SQuAD is asked.")
    squad_dev: str | None = setting(None, "SQuAD's dev file.")
    preset: str | None = setting(
        None, "Folder of the preset that gets another method, where the experiment is a graft."
    )
    long_rows: str | None = setting(
        None, "Folder of longer rows of the same vocabulary, if losses by position are asked."
    )
    # === Other than the scale says ===
    steps: int | None = setting(None, "Steps of pre-training.", rule=COUNT)
    seeds: int | None = setting(None, "Runs of pre-training of each method.", rule=COUNT)
    tasks: tuple = setting((), f"GLUE tasks, of {', '.join(TASKS)}.")
    precision: str | None = setting(None, "Precision of the work.", one_of=PRECISIONS)
    # === Machine ===
    strategy: str = setting("auto", "How devices share the work.", one_of=STRATEGIES)
    xla: str = machine.xla()
    peak_flops: float | None = setting(
        None,
        "Peak of one device in --precision, FLOP/s. Default: known or measured.",
        rule=POSITIVE,
    )
    utilisation: float | None = setting(
        None,
        "Share of the peak that the plan reckons with. Default: 0.35 on a GPU, 0.45 on a CPU.",
        rule=RATE,
    )

    def problems(self):
        """Returns a sentence for each mistake."""
        return _problems(self)

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
            from keras_tupe.data import file_hash

            files = sorted(pathlib.Path(self.preset).glob("*"))
            kept = [file for file in files if file.name.endswith((".weights.h5", "config.json"))]
            identity["preset"] = {file.name: file_hash(file) for file in kept}
        return identity


def _problems(settings):
    found = [*wrong_fields(settings).values()]
    found += [
        f"--tasks must be of {list(TASKS)}; the nearest is {nearest(task, TASKS)!r}. "
        f"Received: {task!r}"
        for task in settings.tasks
        if task not in TASKS
    ]
    if len(set(settings.tasks)) < len(settings.tasks):
        found.append(f"--tasks must name each task once. Received: {' '.join(settings.tasks)}")
    experiment = None
    if settings.name is None:
        found.append(
            f"NAME must name the experiment, one of {names()}; `study --list` tells about them. "
            "Received: none"
        )
    else:
        try:
            experiment = find(settings.name)
        except ValueError as error:
            found += str(error).splitlines()
    found += _paths(settings)
    if experiment is not None and settings.scale in SCALES:
        found += _of_scale(settings, experiment)
    found += settings.out_problems()
    return found


def _paths(settings):
    """Checks what is there, whether the experiment needs it or not."""
    return [
        f"{option(name)} must be {kind}. Received: {not_there(getattr(settings, name))}"
        for name, (_, _, is_there, kind) in _DATA.items()
        if getattr(settings, name) is not None and not is_there(getattr(settings, name))
    ]


def _of_scale(settings, experiment):
    """Checks what this experiment needs at this scale, and that it gets nothing useless."""
    if settings.scale not in experiment.scales:
        return [
            f"{experiment.name} has the scales {list(experiment.scales)}. "
            f"Received: {settings.scale!r}"
        ]
    scale, found = experiment.scales[settings.scale], []
    for name, (part, what, _, _) in _DATA.items():
        is_asked, value = getattr(scale, part), getattr(settings, name)
        if is_asked and value is None and not settings.plan:
            found.append(f"{experiment.name} {what} and needs {option(name)}. Received: none")
        elif not is_asked and value is not None:
            found.append(
                f"{experiment.name} does not use {option(name)}: leave it out. Received: {value!r}"
            )
    for name, part, what in (
        ("steps", scale.pretrain, "pre-train"),
        ("seeds", scale.pretrain, "pre-train"),
        ("tasks", scale.glue, "fine-tune on GLUE"),
    ):
        value = getattr(settings, name)
        if not part and value:
            found.append(
                f"{experiment.name} does not {what}: leave out --{name}. Received: {value!r}"
            )
    if scale.glue and settings.glue is not None and _is_glue(settings.glue):
        found += _tasks_problems(settings.glue, settings.tasks or scale.glue.tasks)
    if scale.pretrain and settings.data is not None and os.path.isdir(settings.data):
        found += _rows("data", settings.data, scale.length)
    if scale.long_rows and settings.long_rows is not None and os.path.isdir(settings.long_rows):
        found += _rows("long_rows", settings.long_rows, scale.long_rows.times * scale.length)
    if scale.preset and settings.preset is not None and os.path.isdir(settings.preset):
        from training.studies.papers.facts import preset_facts

        found += preset_facts(settings.preset, scale)[1]
    return found


def _rows(name, folder, length):
    from keras_tupe import data

    try:
        rows = data.PreparedRows(folder, "train" if name == "data" else "valid")
    except (ValueError, OSError) as error:
        return [f"{option(name)}: {error}"]
    if rows.length == length:
        return []
    return [
        f"{option(name)} must be rows of {length} tokens at this scale: prepare them with "
        f"`--length {length}`. Received: rows of {rows.length} tokens"
    ]


def _tasks_problems(folder, tasks):
    """Looks for the files of GLUE's tasks, so that none is missed after hours."""
    if folder.lower() == "tfds":
        return []
    missing = []
    for task in filter(TASKS.__contains__, tasks):
        folders = (pathlib.Path(folder) / GLUE_TASKS[task].folder, pathlib.Path(folder))
        if not any((one / "train.tsv").is_file() for one in folders):
            missing.append(task)
    if not missing:
        return []
    others = [task for task in tasks if task not in missing]
    hint = f"; --tasks {' '.join(others)} asks for the others alone" if others else ""
    return [
        f"--glue must hold the official files of {', '.join(missing)}, such as "
        f"{GLUE_TASKS[missing[0]].folder}/train.tsv{hint}. Received: {folder!r}"
    ]
