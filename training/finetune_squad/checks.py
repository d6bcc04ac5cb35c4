"""Checks of the settings of `training.finetune_squad`, before anything is loaded."""

import os
import pathlib

from training.command.checks import not_there, uneven_micro_batches, wrong_fields, wrong_out
from training.presets.checks import TOKENIZERS, preset_problems, read_object

EXTENSIONS = ("interpolate", "repeat", "drop_absolute")
_SIZES = ("length", "doc_stride", "max_question_length")
_SPECIALS = {"sentencepiece": 4}  # tokens of a row around question and passage; WordPiece has 3


def find_problems(settings):
    """Returns a sentence for each mistake.

    Args:
        settings: a `Settings` of `training.finetune_squad`.
    """
    outside = wrong_fields(settings)
    found = [*outside.values()]
    if not outside.keys() & {"batch_size", "micro_batches"}:
        found += uneven_micro_batches(settings.batch_size, settings.micro_batches)
    found += _files(settings) + wrong_out(settings.out, "the runs")
    config, problems = preset_problems(settings.preset, "questions", settings.position_file)
    found += problems
    if config is None or outside.keys() & set(_SIZES):
        return found
    return found + _room(settings) + _limit(settings, config)


def _files(settings):
    found = []
    for name in ("train", "dev"):
        path = getattr(settings, name)
        if path is None:
            found.append(f"--{name} must name a file of SQuAD v1.1 (JSON). Received: none")
        elif not os.path.isfile(path):
            found.append(
                f"--{name} must be a file of SQuAD v1.1 (JSON). Received: {not_there(path)}"
            )
    return found


def _room(settings):
    config = read_object(pathlib.Path(settings.preset) / TOKENIZERS[0]).get("config")
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
    limit = config.get("max_sequence_length")
    if not isinstance(limit, int) or settings.length <= limit:
        return []
    from keras_tupe import positions
    from training.presets.span_extractor import can_extend

    method = positions.METHODS.get(config.get("position"))
    if method is None:
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
