"""Checks of the settings of `training.pretrain`, before any data is read."""

import os

from training.command.checks import not_there, option, uneven_micro_batches, wrong_fields, wrong_out
from training.command.kinds import nearest
from training.command.settings import COMMAND_LINE
from training.command.without_keras import (
    method_names,
    objective_names,
    pattern_names,
    without_keras,
)
from training.pretrain.identity import OBJECTIVE_OPTIONS, changeable, model_settings
from training.pretrain.method import kind_problems, method_problems
from training.pretrain.schedule import step_numbers
from training.pretrain.trunk import ASKED

with without_keras():
    from keras_tupe.models.sizes import SIZES

SHARING = ("tied", "gradient_disentangled", "none")


def find_problems(settings):
    """Returns a sentence for each mistake.

    Args:
        settings: a `Settings` of `training.pretrain`.
    """
    outside = wrong_fields(settings)
    found = [*outside.values()]
    found += _folders(settings)
    found += _preset(settings) if settings.preset is not None else []
    found += method_problems(settings)
    found += _groups(settings) if not {"size", "num_groups"} & set(outside) else []
    found += _objective(settings) or _pattern(settings) or _segments(settings, found)
    found += _changes(settings)
    return found + _steps(settings, outside)


def _folders(settings):
    found = []
    if settings.data is None:
        found.append("--data must name a folder made by `keras-tupe prepare`. Received: none")
    elif not os.path.isdir(settings.data):
        found.append(
            "--data must be a folder made by `keras-tupe prepare`. Received: "
            + not_there(settings.data)
        )
    wrong = wrong_out(settings.out, "the run")
    if settings.data is not None and not wrong:
        data, out = os.path.realpath(settings.data), os.path.realpath(settings.out)
        if os.path.commonpath([data, out]) == data:
            found.append(
                "--out must not be the folder of the rows, nor inside of it. Received: "
                f"out={settings.out!r}, data={settings.data!r}"
            )
    return found + wrong


def _preset(settings):
    found = []
    if not os.path.isfile(os.path.join(settings.preset, "config.json")):
        found.append(
            "--preset must be the folder of a preset, with a config.json. Received: "
            f"{settings.preset!r}"
        )
    # a file may name the model that a preset on the command line takes the place of
    places = {COMMAND_LINE, settings.given.get("preset")}
    useless = [name for name in model_settings(settings) if settings.given.get(name) in places]
    if useless:
        found.append(
            f"A preset brings its own {', '.join(useless)}: leave out either --preset or "
            f"{', '.join(map(option, useless))}. Received: preset={settings.preset!r}"
        )
    return found


def _groups(settings):
    if settings.num_groups is None or settings.size not in SIZES:
        return []
    layers = SIZES[settings.size].num_layers
    if layers % settings.num_groups == 0:
        return []
    return [
        f"--num-groups must divide the {layers} layers of --size {settings.size}. Received: "
        f"num_groups={settings.num_groups}"
    ]


def _objective(settings):
    name = settings.objective
    if name.endswith(".py"):
        try:
            settings.objective_record()
        except ValueError as error:
            return [f"--objective: {error}"]
    elif name not in objective_names():
        return [
            f"--objective must be one of {objective_names()}; the nearest is "
            f"{nearest(name, objective_names())!r}. Received: {name!r}"
        ]
    # a file may have settings of masks that an objective on the command line has no use for
    places = {COMMAND_LINE, settings.given.get("objective")}
    given = [
        one
        for one in (*OBJECTIVE_OPTIONS, *ASKED, "pattern_file")
        if settings.given.get(one) in places - {None}
    ]
    useless = [one for one in given if not _has_use_for(settings.objective_record(), one)]
    if useless:
        return [
            f"--objective {name} has no use for {', '.join(map(option, useless))}: leave that out. "
            f"Received: {', '.join(f'{one}={getattr(settings, one)!r}' for one in useless)}"
        ]
    return []


def _has_use_for(objective, name):
    if name in OBJECTIVE_OPTIONS:
        return name in objective.options
    return name.replace("_file", "_options") in objective.backbone_arguments


def _pattern(settings):
    if settings.preset is not None and not any(
        settings.given.get(name) for name in ("attention_pattern", "pattern_options")
    ):
        return []
    file, name = settings.pattern_file, settings.attention_pattern
    if (file or name) is None and settings.pattern_options == "{}":
        return []  # the objective's own, whose record is not needed
    name, load = settings.pattern_name(), settings.pattern
    found = kind_problems(
        settings, "attention_pattern", name, pattern_names(), load, '{"window": 64}'
    )
    if found:
        return found
    try:
        visible = load().visible(0, settings.resolved_pattern_options())
    except (TypeError, ValueError) as error:
        return [f"--pattern-options: {error}"]
    is_causal = visible is not None and visible.is_causal
    if settings.objective_record().needs("attention_pattern") and not is_causal:
        return [
            f"--objective {settings.objective} needs an attention pattern in which no token sees "
            "what comes after it, such as --attention-pattern causal. Received: "
            f"{name!r} with options {settings.pattern_options}"
        ]
    if settings.preset is None and settings.method_name() in method_names():
        try:
            settings.method().check_pattern(settings.method_name(), name)
        except ValueError as error:
            return [f"--attention-pattern: {error}"]
    return []


def _segments(settings, found):
    """Checks what segments need; whatever is wrong by itself is told first."""
    whole = settings.memory_and_segment()
    if found or settings.preset is not None or not whole:
        return []
    from keras_tupe.layers.attention.segments import segments_of

    name, method = settings.method_name(), settings.method()
    try:
        visible = settings.pattern().visible(0, settings.resolved_pattern_options())
        segments_of(settings.memory_length, settings.segment_length, visible)
        options = method.resolve(settings.method_options())
        method.check_memory(name, options)
    except (TypeError, ValueError) as error:
        return [f"--memory-length, --segment-length: {error}"]
    rows = settings.max_sequence_length
    if rows is None or rows >= whole or not method.has_length_limit(options):
        return []
    return [
        f"--max-sequence-length must be at least that of memory and segment, {whole}: --position "
        f"{name} has tables with a row for each of their tokens. Received: "
        f"max_sequence_length={rows}"
    ]


def _changes(settings):
    fields, known = set(vars(settings)) - {"given"}, changeable(settings)
    return [
        f"--allow-change may name {', '.join(known)}; "
        + (
            "a run cannot change this one on its way"
            if name in fields
            else f"the nearest is {nearest(name, known)!r}"
        )
        + f". Received: {name!r}"
        for name in settings.allow_change
        if name not in known
    ]


def _steps(settings, outside):
    """Checks numbers that must fit each other, where each is right by itself."""
    found = []
    if not outside.keys() & {"steps", "warmup_steps"} and (settings.warmup_steps >= settings.steps):
        found.append(
            "--warmup-steps must be below --steps. Received: "
            f"warmup_steps={settings.warmup_steps}, steps={settings.steps}"
        )
    if not outside.keys() & {"batch_size", "micro_batches"}:
        found += uneven_micro_batches(settings.batch_size, settings.micro_batches)
    for name in ("keep_steps", "preset_steps"):
        received = f"Received: {getattr(settings, name)!r}"
        try:
            steps = step_numbers(getattr(settings, name))
        except ValueError:
            steps = (0,)
        if any(step < 1 for step in steps):
            found.append(
                f"{option(name)} must be steps >= 1 by commas, such as 100000,300000. {received}"
            )
        elif steps and "steps" not in outside and steps[-1] > settings.steps:
            found.append(
                f"{option(name)} must not be above --steps, {settings.steps}, which the run never "
                f"passes. {received}"
            )
    return found
