"""The curves of a command line, done or gone on with, and their report."""

import pathlib

from keras_tupe.data import write_json
from training.command.grid import Grid
from training.command.report_files import replaced_picture, replaced_text
from training.machine.kind import machine_kind
from training.prune.report import report
from training.prune.run import measure_curves

RESULTS = "results.json"
MARKDOWN = "results.md"
PICTURE = "pruning.png"


def measure(settings, command):
    """Measures the curves of `settings`, writes the folder, and returns the report.

    Args:
        settings: a `Settings` without problems.
        command: the command line, for the record.

    Raises:
        ValueError: if the preset, the data or the folder cannot be used.
    """
    record = {"command": command, "machine": machine_kind()}
    out = pathlib.Path(settings.out)
    with Grid(out, "prune") as grid:
        results = {**record, **measure_curves(settings, grid)}
        text = report(results)
        write_json(out / RESULTS, results)
        replaced_text(out / MARKDOWN, f"{text}\n")
        replaced_picture(out / PICTURE, lambda path: _draw(path, results))
    return text


def _draw(path, results):
    from training.prune.picture import draw_pruning

    draw_pruning(path, results)
