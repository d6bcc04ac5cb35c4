"""Checks of the settings of `training.finetune_seq2seq`, before anything is loaded."""

import os
import pathlib

from training.command.checks import not_there, option, uneven_micro_batches, wrong_fields, wrong_out
from training.command.settings import COMMAND_LINE
from training.command.without_keras import without_keras
from training.presets.checks import preset_problems, read_object
from training.pretrain.method import method_problems

with without_keras():
    pass

SCHEDULES = ("linear", "inverse_sqrt")
FILES = ("train", "valid", "test")
BACKBONE = "TupeSeq2SeqBackbone"
# Fields of the trunk that the command asks for.
TRUNK = (
    *("position", "position_options", "normalize_first", "initializer_range"),
    *("normalize_embeddings", "scale_embeddings"),
)
# What the new model is made of; a preset brings its own.
MODEL = ("size", *TRUNK, "vocabulary_size", "lowercase")


def find_problems(settings):
    """Returns a sentence for each mistake.

    Args:
        settings: a `Settings` of `training.finetune_seq2seq`.
    """
    outside = wrong_fields(settings)
    found = [*outside.values()]
    if not outside.keys() & {"batch_size", "micro_batches"}:
        found += uneven_micro_batches(settings.batch_size, settings.micro_batches)
    found += _files(settings) + wrong_out(settings.out, "the runs")
    found += _preset(settings) if settings.preset is not None else method_problems(settings)
    if settings.steps is not None and settings.epochs is not None:
        found.append(
            "--steps and --epochs both say how long to train: give one of them. Received: "
            f"steps={settings.steps}, epochs={settings.epochs}"
        )
    return found


def _files(settings):
    found = []
    for name in FILES:
        path = getattr(settings, name)
        if path is None and name != "test":
            found.append(
                f"--{name} must name a file of pairs: source, tab, target in each line. Received: "
                "none"
            )
        elif path is not None and not os.path.isfile(path):
            found.append(f"--{name} must be a file of pairs. Received: {not_there(path)}")
    return found


def _preset(settings):
    config, found = preset_problems(settings.preset, "the pairs", settings.position_file)
    # a file may name the model that a preset on the command line takes the place of
    useless = [name for name in MODEL if settings.given.get(name) == COMMAND_LINE]
    if useless:
        found.append(
            f"A preset brings its own {', '.join(useless)}: leave out either PRESET or "
            f"{', '.join(map(option, useless))}. Received: preset={settings.preset!r}"
        )
    kind = read_object(pathlib.Path(settings.preset) / "config.json").get("registered_name")
    if config is not None and kind != f"keras_tupe>{BACKBONE}":
        found.append(
            f"PRESET must be that of a model of pairs, with a {BACKBONE}, as this command and "
            f"`TupeSeq2SeqLM.save_to_preset` write it. Received: {settings.preset!r}, of "
            f"{str(kind).rpartition('>')[2]}"
        )
    return found
