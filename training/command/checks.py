"""Checks of a setting whatever the command: ranges, choices, folders."""

import errno
import math
import os
import tempfile

from training.command.kinds import nearest

STRATEGIES = ("auto", "one", "mirrored", "multiworker")
PRECISIONS = ("float32", "mixed_bfloat16", "mixed_float16")
SWITCHES = ("auto", "on", "off")
MACHINE_CHOICES = {"strategy": STRATEGIES, "precision": PRECISIONS, "xla": SWITCHES}

# (what is expected, whether a value is that). All refuse nan and infinity.
COUNT = ("an integer >= 1", lambda value: value >= 1)
COUNT_OR_ZERO = ("an integer >= 0", lambda value: value >= 0)
POSITIVE = ("a number above 0", lambda value: 0 < value < math.inf)
NOT_NEGATIVE = ("a number >= 0", lambda value: 0 <= value < math.inf)
SHARE = ("from 0 to below 1", lambda value: 0 <= value < 1)


def option(name):
    """Returns how a setting is written on the command line.

    Example:
        >>> option("batch_size")
        '--batch-size'
    """
    return "--" + name.replace("_", "-")


def wrong_choices(settings, choices):
    """Returns a sentence for each setting that is not one of its choices.

    Args:
        settings: has an attribute for each name; what is `None` is left out.
        choices: dictionary: name -> the values that it may have.
    """
    return [
        f"{option(name)} must be one of {list(allowed)}; the nearest is "
        f"{nearest(getattr(settings, name), allowed)!r}. Received: {getattr(settings, name)!r}"
        for name, allowed in choices.items()
        if getattr(settings, name) not in (None, *allowed)
    ]


def out_of_range(settings, ranges):
    """Returns a dictionary: name of each setting outside of its range -> a sentence.

    Args:
        settings: has an attribute for each name; what is `None` is left out.
        ranges: dictionary: name -> (what is expected, function: value -> whether it is that).
    """
    return {
        name: f"{option(name)} must be {expected}. Received: {getattr(settings, name)}"
        for name, (expected, is_right) in ranges.items()
        if getattr(settings, name) is not None and not is_right(getattr(settings, name))
    }


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
            f"{option} must be a folder that can be written. Received: {os.fspath(out)!r}, and "
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
