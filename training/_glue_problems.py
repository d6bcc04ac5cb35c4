"""What can be wrong with the settings of `training.finetune_glue`, before anything is loaded."""

import json
import math
import os
import pathlib

from keras_tupe import positions
from keras_tupe.data.glue import TASKS as GLUE_TASKS
from training._glue_protocol import PROTOCOLS, TASKS
from training._pretrain_problems import PRECISIONS, STRATEGIES, SWITCHES
from training._setting_kinds import nearest

_CHOICES = {
    "protocol": tuple(PROTOCOLS),
    "strategy": STRATEGIES,
    "precision": PRECISIONS,
    "xla": SWITCHES,
}
_COUNT = ("an integer >= 1", lambda value: value >= 1)
_SHARE = ("from 0 to below 1", lambda value: 0 <= value < 1)
# Name -> (what is expected, whether a value is that). All refuse nan and infinity.
_RANGES = {
    "seeds": _COUNT,
    "epochs": _COUNT,
    "batch_size": _COUNT,
    "warmup_share": _SHARE,
    "weight_decay": ("a number >= 0", lambda value: 0 <= value < math.inf),
    "clip_norm": ("a number above 0", lambda value: 0 < value < math.inf),
    "dropout": _SHARE,
    "length": ("an integer >= 6, room for two words and four special tokens", lambda n: n >= 6),
    "max_train_rows": _COUNT,
    "micro_batches": _COUNT,
}
_TOKENIZERS = ("tokenizer.json", "preprocessor.json")


def find_problems(settings):
    """Returns a sentence for each mistake.

    Args:
        settings: a `Settings` of `training.finetune_glue`.
    """
    found = []
    for name, allowed in _CHOICES.items():
        value = getattr(settings, name)
        if value not in allowed:
            found.append(
                f"{_option(name)} must be one of {list(allowed)}; the nearest is "
                f"{nearest(value, allowed)!r}. Received: {value!r}"
            )
    for name, (expected, is_right) in _RANGES.items():
        value = getattr(settings, name)
        if value is not None and not is_right(value):
            found.append(f"{_option(name)} must be {expected}. Received: {value}")
    found += _tasks(settings.tasks)
    found += _learning_rates(settings.learning_rates)
    found += _batches(settings) if not found else []
    found += _folders(settings)
    return found + _preset(settings)


def _option(name):
    return "--" + name.replace("_", "-")


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


def _batches(settings):
    size = settings.plan().batch_size
    if size % settings.micro_batches:
        return [
            "--batch-size must be divisible by --micro-batches. Received: "
            f"batch_size={size}, micro_batches={settings.micro_batches}"
        ]
    return []


def _folders(settings):
    found = []
    if settings.data is None:
        found.append(
            "--data must name a folder with GLUE's official TSV files, or be tfds. Received: none"
        )
    elif settings.data.lower() != "tfds" and not os.path.isdir(settings.data):
        found.append(
            "--data must be a folder with GLUE's official TSV files "
            f"({', '.join(GLUE_TASKS[name].folder for name in TASKS)}), or tfds. "
            f"Received: {settings.data!r}, where there is none"
        )
    if settings.out is None:
        found.append("--out must name the folder of the grid. Received: none")
    elif os.path.lexists(settings.out) and not os.path.isdir(settings.out):
        found.append(f"--out must be a folder. Received: the file {settings.out!r}")
    return found


def _preset(settings):
    """Looks at the small files of a preset only."""
    if settings.preset is None:
        return ["PRESET must be the folder of a preset. Received: none"]
    folder = pathlib.Path(settings.preset)
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))["config"]
        options = config["position_options"]
    except (OSError, ValueError, KeyError, TypeError):
        return [
            "PRESET must be the folder of a preset of this package, with its config.json. "
            f"Received: {settings.preset!r}"
        ]
    found = []
    if not any((folder / name).is_file() for name in _TOKENIZERS):
        found.append(
            "PRESET must have a tokenizer, so that it can read the tasks' texts. Save the model "
            f"with its preprocessor. Received: {settings.preset!r}, without {_TOKENIZERS[0]}"
        )
    if settings.position_file is not None:
        try:
            if config.get("position") not in positions.METHODS:
                positions.load_file(settings.position_file)
        except ValueError as error:
            return [*found, f"--position-file: {error}"]
    method, limit = positions.METHODS.get(config.get("position")), config.get("max_sequence_length")
    is_limited = method is not None and method.has_length_limit(options)
    if is_limited and settings.length is not None and settings.length > limit:
        found.append(
            f"--length must not be above {limit}, the last position that the preset's "
            f"{config['position']!r} knows; extend it with `keras_tupe.extend_positions`, or cut "
            f"the texts shorter. Received: {settings.length}"
        )
    return found
