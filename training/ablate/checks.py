"""What can be wrong with the settings of `training.ablate`, before anything runs."""

import os
import shlex

from keras_tupe import SIZES, data, positions
from training.ablate.tasks import tasks_of
from training.command.checks import not_there
from training.command.kinds import nearest
from training.command.settings import COMMAND_LINE
from training.presets.variant import Variant, parse

ALL = "all"


def spelled_out(words):
    """Returns the texts of `--positions`, where `all` stands for all methods there are."""
    return [
        text for word in words for text in (sorted(positions.METHODS) if word == ALL else [word])
    ]


def label_of(text):
    """Returns how tables call the variant that a text names, or the text if it names none."""
    try:
        return parse(text).label
    except (ValueError, TypeError):
        return text


def find_problems(settings, own_choice):
    """Returns a sentence for each mistake.

    Args:
        settings: a `Settings` of `training.ablate`.
        own_choice: names of settings that must not be on the command line.
    """
    if settings.report_only:
        return _report_only(settings)
    found = [
        f"{_option(name)} is not for an ablation: --positions names the methods, --seeds how often "
        f"each is trained, and only presets are kept. Received: {name}={getattr(settings, name)!r}"
        for name in own_choice
        if settings.given.get(name) == COMMAND_LINE
    ]
    if settings.seeds < 1:
        found.append(f"--seeds must be an integer >= 1. Received: {settings.seeds}")
    if settings.valid_every == 0:
        found.append(
            "--valid-every must be above 0: methods are compared by their held-out losses. "
            "Received: 0"
        )
    if settings.strategy == "multiworker":
        found.append(
            "--strategy multiworker is not for an ablation, which starts its runs on one machine. "
            "Start training.pretrain on each host for every run, with --out as this command names "
            "them; --report-only compares them. Received: strategy='multiworker'"
        )
    variants, sentences = _variants(settings)
    found += sentences
    found += _baseline(settings, variants) if not sentences else []
    some = variants[0] if variants else Variant("none")
    if settings.out is None:
        found.append("--out must name the folder of the ablation. Received: none")
    found += settings.pretraining(some, 0, settings.out or "none").problems()
    found += _rows_and_options(settings, variants)
    return found + _tasks(settings)


def _option(name):
    return "--" + name.replace("_", "-")


def _report_only(settings):
    if settings.out is None or not os.path.isdir(settings.out):
        return [f"--report-only needs --out, the folder of an ablation. Received: {settings.out!r}"]
    return []


def _variants(settings):
    """Returns the variants that are right, and sentences on the others."""
    words = spelled_out(settings.position_words())
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
        first = seen.setdefault(
            (variant.position, str(sorted(variant.resolved().items()))), variant
        )
        if first is not variant:
            found.append(
                "--positions must name every method once; options that are the method's defaults "
                f"make no other one. Received: {first.text!r} and {variant.text!r}"
            )
    return variants, found


def _baseline(settings, variants):
    folders = [variant.folder for variant in variants]
    try:
        if parse(settings.baseline).folder in folders:
            return []
    except (ValueError, TypeError):
        pass
    texts = [variant.text for variant in variants]
    return [
        f"--baseline must be one of --positions, {texts}; the nearest is "
        f"{nearest(settings.baseline, texts)!r}. Received: {settings.baseline!r}"
    ]


def _rows_and_options(settings, variants):
    """Checks the rows, and the options of the methods for rows of their length."""
    if settings.data is None or not os.path.isdir(settings.data) or settings.size not in SIZES:
        return []  # said already
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
        ("squad_train", os.path.isfile, "a file"),
        ("squad_dev", os.path.isfile, "a file"),
    ):
        path = getattr(settings, name)
        if path is not None and not is_there(path):
            found.append(f"{_option(name)} must be {kind} that exists. Received: {not_there(path)}")
    for name, switch in (("glue", "tasks"), ("squad", "squad_train"), ("blimp", "blimp")):
        text = getattr(settings, f"{name}_options")
        if text and not getattr(settings, switch):
            found.append(
                f"--{name}-options is of no use without {_option(switch)}. Received: {text!r}"
            )
        try:
            shlex.split(text)
        except ValueError as error:
            found.append(f"--{name}-options must be words of a shell: {error}. Received: {text!r}")
    if found:
        return found
    return [sentence for task in tasks_of(settings) for sentence in task.problems()]
