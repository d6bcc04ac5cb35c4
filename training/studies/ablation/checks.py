"""Checks of settings of an ablation: each returns sentences, and none stops at the first."""

import os
import shlex

from training.command.checks import not_there
from training.command.settings import COMMAND_LINE, nearest, option, wrong_fields
from training.command.variant import Variant, label_of, parse
from training.command.without_keras import without_keras
from training.studies.ablation import objectives as objectives_settings
from training.studies.ablation.tasks import tasks_of

with without_keras():
    from keras_tupe.models.sizes import SIZES

# What a file of settings for training.pretrain may hold and an ablation decides by itself.
OWN_CHOICE = ("position", "position_options", "position_file", "seed", "keep_steps")


def find_problems(settings):
    """Returns a sentence for each mistake.

    Args:
        settings: its `Settings`.
    """
    if settings.report_only and (settings.out is None or not os.path.isdir(settings.out)):
        received = "none" if settings.out is None else not_there(settings.out)
        return [f"--report-only needs --out, the folder of an ablation. Received: {received}"]
    if settings.report_only:
        return []
    if settings.objectives:
        return objectives_settings.find_problems(settings)
    found = [
        f"{option(name)} is not for an ablation: --positions names the methods, --seeds how often "
        f"each is trained, and only presets are kept. Received: {name}={getattr(settings, name)!r}"
        for name in OWN_CHOICE
        if settings.given.get(name) == COMMAND_LINE
    ]
    found += filter(None, [wrong_fields(settings).get("seeds")])
    if settings.valid_every == 0:
        found.append(
            "--valid-every must be above 0: methods are compared by their held-out losses. "
            "Received: 0"
        )
    if settings.strategy == "multiworker":
        found.append(
            "--strategy multiworker is not for an ablation, which starts its runs on one machine. "
            "Received: strategy='multiworker'"
        )
    variants, sentences = _variants(settings)
    found += sentences
    found += _baseline(settings, variants) if not sentences else []
    some = variants[0] if variants else Variant("none")
    if settings.out is None and not settings.plan:
        found.append("--out must name the folder of the ablation. Received: none")
    found += settings.pretraining(some, 0, settings.out or "none").problems()
    found += _rows_and_options(settings, variants)
    return found + _tasks(settings)


def _variants(settings):
    """Returns the variants that are right, and sentences on the others."""
    words = settings.position_texts()
    if not words:
        return [], [
            "--positions must name the methods to compare, such as --positions absolute tupe_r. "
            f"Received: {' '.join(settings.positions) or 'none'}"
        ]
    variants, found = [], []
    for word in words:
        try:
            variants.append(parse(word))
        except (ValueError, TypeError) as error:
            found.append(f"--positions: {error}")
    seen = {}
    for variant in variants:
        method = (variant.position, str(sorted(variant.resolved().items())))
        first = seen.setdefault(method, variant)
        if first is not variant:
            found.append(
                "--positions must name every method once; options that are the method's defaults "
                f"make no other one. Received: {first.text!r} and {variant.text!r}"
            )
    return variants, found


def _baseline(settings, variants):
    if label_of(settings.baseline) in [variant.label for variant in variants]:
        return []
    texts = [variant.text for variant in variants]
    return [
        f"--baseline must be one of --positions, {texts}; the nearest is "
        f"{nearest(settings.baseline, texts)!r}. Received: {settings.baseline!r}"
    ]


def _rows_and_options(settings, variants):
    """Checks the rows, and the options of the methods for rows of their length."""
    if settings.data is None or not os.path.isdir(settings.data) or settings.size not in SIZES:
        return []  # said already
    from keras_tupe import data, positions

    try:
        rows = data.PreparedRows(settings.data, "train")
        data.PreparedRows(settings.data, "valid")
    except (ValueError, OSError) as error:
        return [f"--data: {error}"]
    longest = settings.max_sequence_length or rows.length
    size, found = SIZES[settings.size], []
    for variant in variants:
        method, options = positions.get(variant.position), variant.resolved()
        dims = positions.Dims(size.num_heads, size.hidden_dim // size.num_heads, longest)
        try:
            method.check_pattern(variant.position, settings.attention_pattern)
            for factory in (method.embed, method.bias, method.shared, method.attention):
                if factory is not None:
                    factory(dims, options)
            if method.has_length_limit(options) and rows.length > longest:
                raise ValueError(
                    "rows must not be longer than --max-sequence-length. Received: rows of "
                    f"{rows.length} tokens, max_sequence_length={longest}"
                )
        except (ValueError, TypeError) as error:
            found.append(f"--positions: {variant.text}: {error}")
    return found


def _tasks(settings):
    found = []
    if bool(settings.tasks) != (settings.glue is not None):
        found.append(
            "--tasks and --glue belong together: the names of the tasks, and the folder of their "
            f"files. Received: tasks={list(settings.tasks)}, glue={settings.glue!r}"
        )
    if (settings.squad_train is None) != (settings.squad_dev is None):
        found.append(
            "--squad-train and --squad-dev belong together. Received: "
            f"squad_train={settings.squad_train!r}, squad_dev={settings.squad_dev!r}"
        )
    for name, is_there, kind in (
        ("glue", lambda path: path == "tfds" or os.path.isdir(path), "a folder"),
        ("blimp", os.path.isdir, "a folder"),
        ("long_rows", os.path.isdir, "a folder"),
        ("squad_train", os.path.isfile, "a file"),
        ("squad_dev", os.path.isfile, "a file"),
    ):
        path = getattr(settings, name)
        if path is not None and not is_there(path):
            found.append(f"{option(name)} must be {kind} that exists. Received: {not_there(path)}")
    if settings.long_rows is not None and settings.objective != "causal_lm":
        found.append(
            "--long-rows is for --objective causal_lm, whose losses are of all positions. "
            f"Received: long_rows={settings.long_rows!r}, objective={settings.objective!r}"
        )
    for name, switch in (
        ("glue", "tasks"),
        ("squad", "squad_train"),
        ("blimp", "blimp"),
        ("perplexity", "long_rows"),
    ):
        text = getattr(settings, f"{name}_options")
        if text and not getattr(settings, switch):
            found.append(
                f"--{name}-options is of no use without {option(switch)}. Received: {text!r}"
            )
        try:
            shlex.split(text)
        except ValueError as error:
            found.append(f"--{name}-options must be words of a shell: {error}. Received: {text!r}")
    if found:
        return found
    tasks = tasks_of(settings)
    found = [sentence for task in tasks for sentence in task.problems()]
    if tasks and settings.objective == "seq2seq":
        found.append(
            "--objective seq2seq has no tasks yet: the commands of --tasks, --squad-train and "
            "--blimp take encoders, and this one trains an encoder and a decoder. Leave them out. "
            f"Received: {', '.join(task.name for task in tasks)}"
        )
    if settings.objective in ("causal_lm", "replaced_token"):
        found += [
            "--blimp-options cannot have --score word, which is for models of masked tokens. "
            f"Received: {settings.blimp_options!r}, objective={settings.objective!r}"
            for task in tasks
            if task.name == "blimp" and task.settings and task.settings.score == "word"
        ]
    return found
