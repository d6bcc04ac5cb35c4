"""Checks of the settings of `training.finetune_glue`, before anything is loaded."""

import math
import os

from training.command.checks import not_there, uneven_micro_batches, wrong_fields, wrong_out
from training.command.kinds import nearest
from training.finetune_glue.protocol import GLUE_TASKS, TASKS
from training.presets.checks import preset_problems


def find_problems(settings):
    """Returns a sentence for each mistake.

    Args:
        settings: a `Settings` of `training.finetune_glue`.
    """
    found = [*wrong_fields(settings).values()]
    found += _tasks(settings.tasks)
    found += _learning_rates(settings.learning_rates)
    if not found:  # else there is no plan
        found += uneven_micro_batches(settings.plan().batch_size, settings.micro_batches)
    found += _data(settings.data) + wrong_out(settings.out, "the grid")
    config, problems = preset_problems(settings.preset, "the tasks' texts", settings.position_file)
    return found + problems + (_limit(settings.length, config) if config else [])


def _tasks(names):
    known = {task.lower().replace("-", ""): task for task in TASKS}
    written = [name.lower().replace("-", "").replace("_", "") for name in names]
    found = []
    for name, plain in zip(names, written, strict=True):
        if plain == "wnli":
            found.append(
                "--tasks has no WNLI: both papers leave it out, since its dev set contradicts its "
                f"training set. Received: {name!r}"
            )
        elif plain not in known:
            found.append(
                f"--tasks must be of {list(TASKS)}; the nearest is {nearest(plain, known)!r}. "
                f"Received: {name!r}"
            )
    if len(set(written)) < len(written):
        found.append(f"--tasks must name each task once. Received: {' '.join(names)}")
    return found


def _learning_rates(texts):
    found, values = [], []
    for text in texts:
        try:
            values.append(float(text))
        except ValueError:
            values.append(math.nan)
        if not 0 < values[-1] < math.inf:
            found.append(f"--learning-rates must be numbers above 0. Received: {text!r}")
    if not found and len(set(values)) < len(values):
        found.append(f"--learning-rates must differ. Received: {' '.join(texts)}")
    return found


def _data(folder):
    if folder is None:
        return [
            "--data must name a folder with GLUE's official TSV files, or be tfds. Received: none"
        ]
    if folder.lower() == "tfds" or os.path.isdir(folder):
        return []
    return [
        "--data must be a folder with GLUE's official TSV files "
        f"({', '.join(GLUE_TASKS[name].folder for name in TASKS)}), or tfds. "
        f"Received: {not_there(folder)}"
    ]


def _limit(length, config):
    limit = config.get("max_sequence_length")
    if length is None or not isinstance(limit, int) or length <= limit:
        return []
    from keras_tupe import positions

    method = positions.METHODS.get(config.get("position"))
    if method is None:
        return []  # an unknown method is told when the preset is loaded
    try:
        is_limited = method.has_length_limit(method.resolve(config["position_options"]))
    except ValueError:
        return []  # likewise
    if not is_limited:
        return []
    return [
        f"--length must not be above {limit}, the last position that the preset's "
        f"{config['position']!r} knows; extend it with `keras_tupe.extend_positions`, or cut "
        f"the texts shorter. Received: {length}"
    ]
