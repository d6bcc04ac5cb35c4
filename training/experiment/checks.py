"""What can be wrong with the settings of `training.experiment`, before anything is loaded."""

import os
import pathlib

from keras_tupe import data
from training.command.checks import (
    COUNT,
    MACHINE_CHOICES,
    POSITIVE,
    not_there,
    out_of_range,
    wrong_choices,
)
from training.command.checks import STRATEGIES as _ALL_STRATEGIES
from training.command.kinds import nearest
from training.experiment.definition import find, names
from training.experiment.facts import preset_facts
from training.experiment.folder import folder_problems
from training.experiment.schema import SCALES
from training.finetune_glue.protocol import TASKS

STRATEGIES = tuple(name for name in _ALL_STRATEGIES if name != "multiworker")
_CHOICES = {"scale": SCALES, **MACHINE_CHOICES, "strategy": STRATEGIES}
_RANGES = {
    "steps": COUNT,
    "seeds": COUNT,
    "peak_flops": POSITIVE,
    "utilisation": ("above 0 and at most 1", lambda value: 0 < value <= 1),
}
_GLUE_FILES = ("train.tsv", "msr_paraphrase_train.txt")


def find_problems(settings):
    """Returns a sentence for each mistake.

    Args:
        settings: a `Settings` of `training.experiment`.
    """
    if settings.list:
        return []
    found = [*wrong_choices(settings, _CHOICES), *out_of_range(settings, _RANGES).values()]
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
            f"NAME must name the experiment, one of {names()}; --list tells about them. "
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
    if settings.out is None and not settings.plan:
        found.append("--out must name the folder of the experiment. Received: none")
    return found


def _paths(settings):
    """Checks what is there, whether the experiment needs it or not."""
    found = []
    for name, is_there, kind in (
        ("data", os.path.isdir, "a folder made by training.prepare"),
        ("glue", _is_glue, "the folder of GLUE's official files, or tfds"),
        ("squad_train", os.path.isfile, "a file of SQuAD v1.1 (JSON)"),
        ("squad_dev", os.path.isfile, "a file of SQuAD v1.1 (JSON)"),
        ("preset", os.path.isdir, "the folder of a preset"),
    ):
        path = getattr(settings, name)
        if path is not None and not is_there(path):
            found.append(f"--{name.replace('_', '-')} must be {kind}. Received: {not_there(path)}")
    return found


def _of_scale(settings, experiment):
    """Checks what this experiment needs at this scale, and that it gets nothing useless."""
    if settings.scale not in experiment.scales:
        return [
            f"{experiment.name} has the scales {list(experiment.scales)}. "
            f"Received: {settings.scale!r}"
        ]
    scale = experiment.scales[settings.scale]
    found = []
    for names_, part, what in (
        (("data",), scale.pretrain, "pre-trains"),
        (("glue",), scale.glue, "fine-tunes on GLUE"),
        (("squad_train", "squad_dev"), scale.squad, "fine-tunes on SQuAD"),
        (("preset",), scale.preset, "puts another method into a trained model"),
    ):
        for name in names_:
            option, value = "--" + name.replace("_", "-"), getattr(settings, name)
            if part and value is None and not settings.plan:
                found.append(f"{experiment.name} {what} and needs {option}. Received: none")
            elif not part and value is not None:
                found.append(f"{experiment.name} has no use for {option}. Received: {value!r}")
    for name, part, what in (
        ("steps", scale.pretrain, "does not pre-train"),
        ("seeds", scale.pretrain, "does not pre-train"),
        ("tasks", scale.glue, "does not fine-tune on GLUE"),
    ):
        if not part and getattr(settings, name):
            found.append(
                f"{experiment.name} {what}: leave out --{name}. "
                f"Received: {getattr(settings, name)!r}"
            )
    if scale.glue and settings.glue is not None and _is_glue(settings.glue):
        found += _tasks_problems(settings.glue, settings.tasks or scale.glue["tasks"])
    found += _rows(settings, scale) if scale.pretrain and settings.data is not None else []
    if scale.preset and settings.preset is not None and os.path.isdir(settings.preset):
        found += preset_facts(settings.preset, scale)[1]
    if settings.out is not None and not settings.plan:
        found += folder_problems(settings.out, settings.identity())
    return found


def _rows(settings, scale):
    if not os.path.isdir(settings.data):
        return []  # said already
    try:
        rows = data.PreparedRows(settings.data)
    except (ValueError, OSError) as error:
        return [f"--data: {error}"]
    if rows.length == scale.length:
        return []
    return [
        f"--data must be rows of {scale.length} tokens at this scale: prepare them with "
        f"`--length {scale.length}`. Received: rows of {rows.length} tokens"
    ]


def _is_glue(path):
    return path.lower() == "tfds" or os.path.isdir(path)


def _tasks_problems(folder, tasks):
    """Looks for the files of GLUE's tasks, so that none is missed after hours."""
    if folder.lower() == "tfds":
        return []
    missing = []
    for task in filter(TASKS.__contains__, tasks):
        places = (pathlib.Path(folder) / data.GLUE_TASKS[task].folder, pathlib.Path(folder))
        if not any((place / name).is_file() for place in places for name in _GLUE_FILES):
            missing.append(task)
    if not missing:
        return []
    others = [task for task in tasks if task not in missing]
    hint = f"; --tasks {' '.join(others)} asks for the others alone" if others else ""
    return [
        f"--glue must hold the official files of {', '.join(missing)}, such as "
        f"{data.GLUE_TASKS[missing[0]].folder}/train.tsv{hint}. Received: {folder!r}"
    ]
