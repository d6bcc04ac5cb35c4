"""What tells a run from another one, of which it cannot be the continuation."""

import dataclasses
import json
import os
import pathlib

from training.command.settings import counting
from training.pretrain.trunk import ASKED

# What belongs to one objective, or some: the options of their records.
OBJECTIVE_OPTIONS = (
    *("mask_rate", "whole_word", "mask_special"),
    *("generator_share", "embedding_sharing", "discriminator_weight"),
    *("infill_share", "mean_span", "permute_sentences"),
)


def changeable(settings):
    """Returns names of what a run may go on with although its checkpoint has another value.

    The rest would not fit the checkpoint (the model), or make rows come twice or never (batch size
    and seed).
    """
    fields = dataclasses.fields(settings)
    return ["data", *(field.name for field in fields if field.metadata.get("may_change"))]


def model_settings(settings):
    """Returns names of what a new model is made of; a preset brings its own."""
    return ["size", *(name for name in ASKED if name not in changeable(settings))]


def identity_of(settings):
    """Returns what must be equal for a run to continue from a checkpoint, as JSON values.

    These are the settings that change what is computed: model, masking, optimizer, batch,
    precision, seed; and `valid_batches`, since points of a curve must be of the same rows. A
    preset and a method's file count by their content, options by their meaning, and what a
    preset brings is left out.

    Left out is where and how the work is done (`strategy`, `xla`, `remat`,
    `deterministic`: the same mathematics, rounded differently; and dropout masks depend on
    the number of replicas), what is written and how often, and what a stopped run must be
    able to take back (`skip_bad_steps`). `data` is left out because a folder may move: its
    content is compared by its own hash.
    """
    from keras_tupe.data import file_hash

    chosen = counting(settings)
    for name in set(OBJECTIVE_OPTIONS) - set(settings.objective_options()):
        del chosen[name]
    if settings.objective.endswith(".py"):
        chosen["objective"] = pathlib.Path(settings.objective).stem
        chosen["objective_file"] = file_hash(settings.objective)
    del chosen["pattern_file"]
    if settings.pattern_file is not None:
        chosen["pattern_file"] = file_hash(settings.pattern_file)
    if settings.position_file is not None:
        chosen["position_file"] = file_hash(settings.position_file)
    if settings.preset is None:
        chosen["position"] = settings.method_name()
        options = settings.method().resolve(settings.method_options())
        chosen["position_options"] = json.loads(json.dumps(options))  # lists, as when read
        chosen["attention_pattern"] = settings.pattern_name()
        options = settings.resolved_pattern_options()
        chosen["pattern_options"] = json.loads(json.dumps(options))
        return chosen
    chosen["preset"] = {
        name: file_hash(os.path.join(settings.preset, name))
        for name in sorted(os.listdir(settings.preset))
        if name.endswith((".json", ".h5"))
    }
    return {name: value for name, value in chosen.items() if name not in model_settings(settings)}


def data_facts(train, valid):
    """Returns what tells the rows of a run from others."""
    from keras_tupe.data import split_hash

    return {
        "rows_hash": split_hash(train.record, "train"),
        "valid_rows_hash": split_hash(valid.record, "valid"),
        "length": train.length,
        "vocabulary": train.vocabulary.sha256,
    }
