"""Checks of a setting whatever the command: ranges, choices, folders."""

import dataclasses
import errno
import math
import os
import tempfile

from training.command.kinds import nearest

STRATEGIES = ("auto", "one", "mirrored", "multiworker")
PRECISIONS = ("float32", "mixed_bfloat16", "mixed_float16")
SWITCHES = ("auto", "on", "off")

# (what is expected, whether a value is that). All refuse nan and infinity.
COUNT = ("an integer >= 1", lambda value: value >= 1)
COUNT_OR_ZERO = ("an integer >= 0", lambda value: value >= 0)
POSITIVE = ("a number above 0", lambda value: 0 < value < math.inf)
NOT_NEGATIVE = ("a number >= 0", lambda value: 0 <= value < math.inf)
SHARE = ("from 0 to below 1", lambda value: 0 <= value < 1)
RATE = ("above 0 and at most 1", lambda value: 0 < value <= 1)


def option(name):
    """Returns how a setting is written on the command line.

    Example:
        >>> option("batch_size")
        '--batch-size'
    """
    return "--" + name.replace("_", "-")


def wrong_fields(settings):
    """Returns a dictionary: name of each setting that is not what its field says -> a sentence.

    Args:
        settings: a dataclass of fields that `training.command.settings.setting` made; what is
            `None` is left out.
    """
    found = {}
    for field in dataclasses.fields(settings):
        name, value = field.name, getattr(settings, field.name)
        rule, names = field.metadata.get("rule"), field.metadata.get("one_of")
        if value is None:
            continue
        if names is not None and value not in names:
            found[name] = (
                f"{option(name)} must be one of {[*names]}; the nearest is "
                f"{nearest(value, names)!r}. Received: {value!r}"
            )
        elif rule is not None and not rule[1](value):
            found[name] = f"{option(name)} must be {rule[0]}. Received: {value}"
    return found


def uneven_micro_batches(batch_size, micro_batches):
    """Returns a sentence if a batch cannot be cut into so many equal parts."""
    if batch_size % micro_batches == 0:
        return []
    return [
        "--batch-size must be divisible by --micro-batches. Received: "
        f"batch_size={batch_size}, micro_batches={micro_batches}"
    ]


def wrong_out(out, what):
    """Returns a sentence if `--out` cannot be a folder.

    Args:
        out: the setting.
        what: whose folder it is, such as "the run".
    """
    if out is None:
        return [f"--out must name the folder of {what}. Received: none"]
    return no_folder(out)


def no_folder(out, option="--out"):
    """Returns a sentence if a path is not a folder that can be written into, and cannot become one.

    Where it is not there yet a folder of another name is made beside it for a moment: only that
    tells it of every file system.

    Args:
        out: the path.
        option: how the setting is written.
    """
    above = os.path.realpath(out)  # a link may name a folder that is to be made
    if os.path.lexists(above) and not os.path.isdir(above):
        return [f"{option} must be a folder. Received: the file {os.fspath(out)!r}"]
    is_there = os.path.isdir(above)
    while not os.path.lexists(above):
        above = os.path.dirname(above)
    try:
        if is_there and not os.access(above, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        if not is_there:
            os.rmdir(tempfile.mkdtemp(prefix=".keras_tupe.", dir=above))
    except OSError as error:
        return [
            f"{option} must name a folder that can be written. Received: {os.fspath(out)!r}, and "
            f"in {above!r}: {error.strerror}"
        ]
    return []


def not_there(path):
    """Returns what is wrong with a path where something else is expected, as a phrase.

    Example:
        >>> not_there("no/such/folder")
        "'no/such/folder', where there is none"
    """
    found = "which is a folder" if os.path.isdir(path) else "which is a file"
    return f"{path!r}, {found if os.path.lexists(path) else 'where there is none'}"
