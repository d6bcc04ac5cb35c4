"""What every evaluation is given, what it measures, and what it leaves in a folder."""

import collections.abc
import dataclasses
import itertools
import os
import pathlib

from training.command.report import table
from training.command.settings import setting, wrong_fields
from training.presets.folder import measurement_problems

RESULTS = "results.json"
_RESAMPLES = 2000  # behind the interval of a difference


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of every evaluation. A task's class adds its own, and writes the help anew."""

    presets: tuple = setting(
        (), "Folders of presets, compared with the first one.", positional=True, texts=True
    )
    data: str | None = setting(None, "Folder of the data.")
    out: str | None = setting(None, "Folder of the results.")
    position_file: str | None = setting(
        None, "Python file that defines the presets' own positional method."
    )

    content = "of the data"  # what the folder --data is
    is_data = staticmethod(os.path.isdir)

    def problems(self):
        """Returns a sentence for each mistake."""
        found = measurement_problems(self, self.presets, self.content, self.is_data)
        real = [os.path.realpath(preset) for preset in self.presets]
        if len(set(real)) < len(real):
            found.append(f"PRESETS must be different folders. Received: {' '.join(self.presets)}")
        return [*found, *wrong_fields(self).values()]


@dataclasses.dataclass(frozen=True)
class Measured:
    """What an evaluation found of one preset.

    Attributes:
        results: dictionary for `results.json`, with `position`.
        rows: arrays `(rows, ...)`, of which `Task.score` makes the score.
        same: what says that two presets were given the same rows: only then they are compared.
    """

    results: dict
    rows: tuple
    same: object


@dataclasses.dataclass(frozen=True)
class Task:
    """An evaluation; its module has a subclass of `Settings` too.

    Attributes:
        measure: function of settings, a preset and its folder -> `Measured`. It may leave files.
        report: function of results -> what is printed.
        draw: function of a path and a dictionary of label -> `Measured`.
        picture: name of the picture's file.
        makes: other names by which a folder of its own is recognized.
        score_name: what `score` is, for a table.
        score: function of `Measured.rows` -> number.
        stopped: what to say after Ctrl-C.
    """

    measure: collections.abc.Callable
    report: collections.abc.Callable
    draw: collections.abc.Callable
    picture: str
    makes: tuple
    score_name: str
    score: collections.abc.Callable
    stopped: str = "Nothing was written."


def evaluate(task, name, settings, command):
    """Evaluates all presets, writes the folder, and returns what is printed.

    Args:
        task, name: a `Task`, and what it is called.
        settings: its settings, without problems.
        command: the command line, for the record.

    Raises:
        ValueError: if a preset, the data or the folder cannot be used.
    """
    from keras_tupe import positions
    from keras_tupe._commit import commit
    from keras_tupe.data import write_json
    from training.command.folder_lock import FolderLock
    from training.command.report import replaced_picture
    from training.machine.kind import machine_kind

    out, is_one = pathlib.Path(settings.out), len(settings.presets) == 1
    record = {"task": name, "command": command, "commit": commit(), "machine": machine_kind()}
    with FolderLock(out, f"evaluate {name}", makes=(task.picture, name, *task.makes)):
        if settings.position_file is not None:
            positions.load_file(settings.position_file)
        found = {}
        for label, preset in labels(settings.presets).items():
            folder = out if is_one else out / name / label
            folder.mkdir(parents=True, exist_ok=True)
            measured = task.measure(settings, preset, folder)
            write_json(folder / RESULTS, {**record, **measured.results})
            found[measured.results["position"] if is_one else label] = measured
        reports = {label: task.report(measured.results) for label, measured in found.items()}
        if not is_one:
            compared = compare(task, found)
            write_json(out / RESULTS, {**record, "presets": compared})
        replaced_picture(out / task.picture, lambda path: task.draw(path, found))
    if is_one:
        return "\n".join(reports.values())
    parts = [f"{label}:\n\n{text}" for label, text in reports.items()]
    return "\n\n".join([*parts, _table(task, compared)])


def labels(presets):
    """Returns a name for each preset, by which the others' differ: a dictionary, in order.

    Example:
        >>> labels(["runs/t5/preset", "runs/rope/preset"])
        {'t5': 'runs/t5/preset', 'rope': 'runs/rope/preset'}
    """
    parts = {preset: pathlib.Path(os.path.abspath(preset)).parts for preset in presets}
    head = _num_equal(parts.values())
    tail, found = _num_equal([one[head:][::-1] for one in parts.values()]), {}
    for number, (preset, one) in enumerate(parts.items(), 1):
        label = "-".join(one[head : len(one) - tail]) or one[-1]
        found[label if label not in found else f"{label}-{number}"] = preset
    return found


def _num_equal(paths):
    alike = itertools.takewhile(lambda parts: len(set(parts)) == 1, zip(*paths, strict=False))
    return len(list(alike))


def compare(task, found):
    """Returns the score of each preset, and its difference from that of the first.

    Args:
        task: a `Task`.
        found: dictionary of label -> `Measured`.

    Returns:
        Dictionary of label -> {`position`, `score`, `difference`, `low`, `high`}: the last three,
        of a bootstrap over rows that both were given, are `None` where there are no such rows.
    """
    from keras_tupe.metrics import bootstrap_interval

    first, compared = next(iter(found.values())), {}
    for label, other in found.items():
        ends = (None, None, None)
        if other is not first and other.same == first.same:
            half = len(first.rows)
            ends = bootstrap_interval(
                lambda *rows, half=half: task.score(*rows[half:]) - task.score(*rows[:half]),
                *first.rows,
                *other.rows,
                resamples=_RESAMPLES,
            )
        known = {"position": other.results["position"], "score": float(task.score(*other.rows))}
        compared[label] = {**known, **dict(zip(("difference", "low", "high"), ends, strict=True))}
    return compared


def _table(task, compared):
    rows = []
    for label, one in compared.items():
        ends = ["-", "-"] if not rows else ["other rows", "-"]
        if one["difference"] is not None:
            ends = [f"{one['difference']:+.3g}", f"{one['low']:+.3g} to {one['high']:+.3g}"]
        rows.append([label, f"{one['score']:.4g}", *ends])
    return table(["preset", task.score_name, "difference", "95 % interval"], rows)
