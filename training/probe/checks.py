"""Checks of the settings of `training.probe`, before anything is trained."""

import re

from training.command.checks import uneven_micro_batches, wrong_fields, wrong_out
from training.command.kinds import nearest, values_of
from training.command.variant import parse

_LENGTH = re.compile(r"[1-9]\d{0,5}x?", re.ASCII)


def find_problems(settings):
    """Returns a sentence for each mistake.

    Args:
        settings: a `Settings` of `training.probe`.
    """
    outside = wrong_fields(settings)
    found = [*outside.values()]
    if not outside.keys() & {"batch_size", "micro_batches"}:
        found += uneven_micro_batches(settings.batch_size, settings.micro_batches)
    if not outside.keys() & {"hidden_dim", "num_heads"}:
        found += _heads(settings)
    found += wrong_out(settings.out, "the runs") + _tasks(settings.tasks)
    lengths = _lengths(settings) if "length" not in outside else []
    variants, problems = _variants(values_of(settings.positions))
    found += lengths + problems
    sizes = {"length", "max_sequence_length", "hidden_dim", "num_heads"}
    if variants and not lengths and not sizes & outside.keys():
        found += _tables(settings, variants)
    return found


def _heads(settings):
    if settings.hidden_dim % settings.num_heads == 0:
        return []
    return [
        "--hidden-dim must be a multiple of --num-heads. Received: "
        f"hidden_dim={settings.hidden_dim}, num_heads={settings.num_heads}"
    ]


def _tasks(names):
    from training.probe.tasks import TASKS

    found = [
        f"--tasks must be of {list(TASKS)}; the nearest is {nearest(name, TASKS)!r}. "
        f"Received: {name!r}"
        for name in names
        if name not in TASKS
    ]
    if len(set(names)) < len(names):
        found.append(f"--tasks must name each task once. Received: {' '.join(names)}")
    return found


def _lengths(settings):
    found = []
    for text in values_of(settings.lengths):
        if not _LENGTH.fullmatch(text):
            found.append(
                "--lengths must be even numbers of tokens, or times --length, such as 2x. "
                f"Received: {text!r}"
            )
        elif not text.endswith("x") and (int(text) % 2 or int(text) < settings.length):
            found.append(
                "--lengths must be even and not below --length, for shorter rows are those of "
                f"training. Received: {text}, length={settings.length}"
            )
        elif not text.endswith("x") and settings.length < int(text) < 1.5 * settings.length:
            found.append(
                "--lengths above --length must be 1.5 times as many or more, so that there is room "
                f"for a task. Received: {text}, length={settings.length}"
            )
    return found


def _variants(texts):
    """Returns the variants that are right, and sentences on the others."""
    if not texts:
        return [], [
            "--positions must name the methods to probe, such as --positions none absolute tupe_r. "
            "Received: none"
        ]
    variants, found = [], []
    for text in texts:
        try:
            variants.append(parse(text))
        except (ValueError, TypeError) as error:
            found.append(f"--positions: {error}")
    labels = [variant.label for variant in variants]
    found += [
        f"--positions must name every method once. Received: {label!r} more than once"
        for label in sorted(set(labels))
        if labels.count(label) > 1
    ]
    return variants, found


def _tables(settings, variants):
    """Checks the options of the methods, and that no row is longer than a table."""
    from keras_tupe import positions

    asked, found = max(settings.test_lengths[-1], settings.length), []
    key_dim = settings.hidden_dim // settings.num_heads
    for variant in variants:
        method, options = positions.get(variant.position), variant.resolved()
        dims = positions.Dims(settings.num_heads, key_dim, settings.table_length)
        try:
            for factory in (method.embed, method.bias, method.shared, method.attention):
                if factory is not None:
                    factory(dims, options)
            limited = method.has_length_limit(options)
        except (ValueError, TypeError) as error:
            found.append(f"--positions: {variant.text}: {error}")
            continue
        if limited and asked > settings.table_length:
            found.append(
                f"Rows must not be longer than the position table of {variant.label}: lower "
                "--lengths, or raise --max-sequence-length. Received: rows of "
                f"{asked} tokens, max_sequence_length={settings.table_length}"
            )
    return found
