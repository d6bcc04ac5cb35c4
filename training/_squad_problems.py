"""What can be wrong with the settings of `training.finetune_squad`, before anything is loaded."""

import json
import math
import os
import pathlib

from keras_tupe import positions
from training._pretrain_problems import PRECISIONS, STRATEGIES, SWITCHES
from training._setting_kinds import nearest
from training._squad_model import can_extend

EXTENSIONS = ("interpolate", "repeat", "drop_absolute")
_CHOICES = {
    "extend": EXTENSIONS,
    "strategy": STRATEGIES,
    "precision": PRECISIONS,
    "xla": SWITCHES,
}
_COUNT = ("an integer >= 1", lambda value: value >= 1)
_SHARE = ("from 0 to below 1", lambda value: 0 <= value < 1)
_POSITIVE = ("a number above 0", lambda value: 0 < value < math.inf)
# Name -> (what is expected, whether a value is that). All refuse nan and infinity.
_RANGES = {
    "length": _COUNT,
    "doc_stride": _COUNT,
    "max_question_length": _COUNT,
    "max_train_questions": _COUNT,
    "max_dev_questions": _COUNT,
    "learning_rate": _POSITIVE,
    "epochs": _COUNT,
    "batch_size": _COUNT,
    "warmup_share": _SHARE,
    "weight_decay": ("a number >= 0", lambda value: 0 <= value < math.inf),
    "clip_norm": _POSITIVE,
    "dropout": _SHARE,
    "seeds": _COUNT,
    "max_answer_length": _COUNT,
    "n_best": _COUNT,
    "micro_batches": _COUNT,
}
_SIZES = ("length", "doc_stride", "max_question_length")
_TOKENIZERS = ("tokenizer.json", "preprocessor.json")
_SPECIALS = {"sentencepiece": 4}  # tokens of a row around question and passage; WordPiece has 3


def find_problems(settings):
    """Returns a sentence for each mistake.

    Args:
        settings: a `Settings` of `training.finetune_squad`.
    """
    found = []
    for name, allowed in _CHOICES.items():
        value = getattr(settings, name)
        if value not in allowed:
            found.append(
                f"{_option(name)} must be one of {list(allowed)}; the nearest is "
                f"{nearest(value, allowed)!r}. Received: {value!r}"
            )
    out_of_range = {}
    for name, (expected, is_right) in _RANGES.items():
        value = getattr(settings, name)
        if value is not None and not is_right(value):
            out_of_range[name] = f"{_option(name)} must be {expected}. Received: {value}"
    found += out_of_range.values()
    if not out_of_range.keys() & {"batch_size", "micro_batches"} and (
        settings.batch_size % settings.micro_batches
    ):
        found.append(
            "--batch-size must be divisible by --micro-batches. Received: "
            f"batch_size={settings.batch_size}, micro_batches={settings.micro_batches}"
        )
    found += _files(settings)
    return found + _preset(settings, sizes_are_right=not out_of_range.keys() & set(_SIZES))


def _option(name):
    return "--" + name.replace("_", "-")


def _files(settings):
    found = []
    for name in ("train", "dev"):
        path = getattr(settings, name)
        if path is None:
            found.append(f"--{name} must name a file of SQuAD v1.1 (JSON). Received: none")
        elif not os.path.isfile(path):
            found.append(
                f"--{name} must be a file of SQuAD v1.1 (JSON). "
                f"Received: {path!r}, where there is none"
            )
    if settings.out is None:
        found.append("--out must name the folder of the runs. Received: none")
    elif os.path.lexists(settings.out) and not os.path.isdir(settings.out):
        found.append(f"--out must be a folder. Received: the file {settings.out!r}")
    return found


def _preset(settings, sizes_are_right):
    """Looks at the small files of a preset only."""
    if settings.preset is None:
        return ["PRESET must be the folder of a preset. Received: none"]
    folder = pathlib.Path(settings.preset)
    config = _json(folder / "config.json").get("config")
    if not isinstance(config, dict) or not isinstance(config.get("position_options"), dict):
        return [
            "PRESET must be the folder of a preset of this package, with its config.json. "
            f"Received: {settings.preset!r}"
        ]
    found = []
    if not any((folder / name).is_file() for name in _TOKENIZERS):
        found.append(
            "PRESET must have a tokenizer, so that it can read questions. Save the model with its "
            f"preprocessor. Received: {settings.preset!r}, without {_TOKENIZERS[0]}"
        )
    found += _room(settings, _json(folder / _TOKENIZERS[0])) if sizes_are_right else []
    if settings.position_file is not None:
        try:
            if config.get("position") not in positions.METHODS:
                positions.load_file(settings.position_file)
        except ValueError as error:
            return [*found, f"--position-file: {error}"]
    return found + (_limit(settings, config) if sizes_are_right else [])


def _room(settings, tokenizer):
    config = tokenizer.get("config")
    specials = _SPECIALS.get(config.get("kind"), 3) if isinstance(config, dict) else 3
    room = settings.length - specials - settings.max_question_length
    if room >= settings.doc_stride:
        return []
    return [
        f"--length must hold {specials} special tokens, a question of --max-question-length and at "
        "least --doc-stride tokens of the passage, or tokens between two windows would be lost. "
        f"Received: length={settings.length}, max_question_length={settings.max_question_length}, "
        f"doc_stride={settings.doc_stride}"
    ]


def _limit(settings, config):
    """Rows that are longer than what a preset knows, where nothing helps."""
    method, limit = positions.METHODS.get(config.get("position")), config.get("max_sequence_length")
    if method is None or not isinstance(limit, int) or settings.length <= limit:
        return []  # an unknown method is told when the preset is loaded
    try:
        options = method.resolve(config["position_options"])
    except ValueError:
        return []  # likewise
    if can_extend(method, options):
        return []
    return [
        f"--length must not be above {limit}, the most tokens that the preset's "
        f"{config['position']!r} takes, whose tables cannot be made longer. Choose shorter rows, "
        f"or another preset. Received: length={settings.length}"
    ]


def _json(path):
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
