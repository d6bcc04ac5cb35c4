"""What all tasks do alike: their runs, one after another, and the files that tell of them."""

import abc
import hashlib
import pathlib

import numpy as np

from keras_tupe.data import write_json
from training.command import grid
from training.command.report import duration, replaced_picture, replaced_text
from training.machine.kind import machine_kind
from training.presets.folder import preset_digest

MAKES = ("seed-[0-9]*/metrics.json",)  # by which the folder of a task is known, if by nothing else


class Task(abc.ABC):
    """What is fine-tuned on: made of `Settings` without problems, it has read all that it needs.

    Attributes:
        settings: the `Settings`.
        position: name of the positional method.
        picture: name of the picture.
    """

    picture = "results.png"

    def __init__(self, settings):
        self.settings = settings

    def cells(self):
        """Returns the `Cell`s of the runs; here one for each seed."""
        identity = {**self.settings.identity(), **self.content()}
        return [
            grid.Cell(f"seed-{seed}", {**identity, "seed": seed})
            for seed in range(self.settings.seeds)
        ]

    def content(self):
        """Returns what else the numbers of all runs depend on, names -> hashes: here the preset."""
        preset = self.settings.preset
        return {"preset": preset and preset_digest(preset, self.settings.position_file)}

    @abc.abstractmethod
    def do(self, cell, folder):
        """Does a run; what it writes into `folder` is kept. Returns its metrics."""

    def describe(self, metrics):
        """Returns the scores of a run that did not diverge, for a line."""
        return ""

    @abc.abstractmethod
    def results(self, out, done):
        """Returns what `results.json` says of the runs in `out`, of their metrics by name."""

    @abc.abstractmethod
    def report(self, results):
        """Returns the blocks of `results.md`, a list of texts."""

    @abc.abstractmethod
    def draw(self, path, results):
        """Draws the picture."""

    def finish(self, runs, results):
        """Does what can be done when there are results; returns further blocks of the report."""
        return []


def carry_out(program, task, command):
    """Does, or goes on with, the runs of a `Task`; returns the report, Markdown.

    Its folders are known by the name of the `program`; the `command` line is for the record.
    """
    out = pathlib.Path(task.settings.out)
    with grid.Grid(out, program, MAKES) as runs:
        done = runs.run(task.cells(), task.do, task.describe, may_diverge=True)
        results = {
            "command": command,
            "commit": runs.commits(done),
            "machine": machine_kind(),
            "preset": task.settings.preset,
            "position": task.position,
            "seconds": sum(metrics.get("seconds", 0.0) for metrics in done.values()),
            **task.results(out, done),
        }
        text = _write(out, task, results)  # also if what is left comes to nothing
        if further := task.finish(runs, results):
            text = _write(out, task, results, further)
    return text


def _write(out, task, results, further=()):
    """Writes `results.json`, `results.md` and the picture; returns the report."""
    blocks = [*task.report(results), f"Time of all runs: {duration(results['seconds'])}.", *further]
    text = "\n\n".join(blocks) + "\n"
    write_json(out / "results.json", results)
    replaced_text(out / "results.md", text)
    replaced_picture(out / task.picture, lambda path: task.draw(path, results))
    return text


def converged(done, settings):
    """Returns the metrics of the seeds that did not diverge, and what is said of all seeds."""
    kept, diverged = grid.converged(done, settings.learning_rate)
    seeds = [int(name.removeprefix("seed-")) for name in kept]
    return kept, {"seeds": seeds, "diverged": diverged}


def part_of(count, limit):
    """Returns the numbers of at most `limit` of so many rows: always the same, in their order."""
    if limit is None or limit >= count:
        return np.arange(count)
    return np.sort(np.random.default_rng(0).permutation(count)[:limit])


def digest_of(rows):
    """Returns a hash of rows, hexadecimal; of each `repr` counts."""
    digest = hashlib.sha256()
    for row in rows:
        digest.update(repr(row).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def told_together(read, names):
    """Returns what each of several files gives, by name; their mistakes are told together."""
    found, problems = {}, []
    for name in names:
        try:
            found[name] = read(name)
        except ValueError as error:
            problems += [f"--{name}: {line}" for line in str(error).splitlines()]
    if problems:
        raise ValueError("\n".join(problems))
    return found


def saved(model, preprocessor, folder):
    """Writes a preset with its preprocessor, so that `from_preset` takes raw text."""
    model.compile()  # else the optimizer's state would go into the preset
    model.preprocessor = preprocessor
    model.save_to_preset(str(folder))
