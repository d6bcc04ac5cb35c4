"""The runs of a command line, done or gone on with, and their report."""

import pathlib

from keras_tupe.trainer import NonFiniteError
from training.command.grid import Grid
from training.finetune.engine import FineTuner
from training.machine.devices import rows_per_part
from training.machine.kind import machine_kind
from training.probe.findings import record
from training.probe.report import answers, page, write
from training.probe.results import ceilings, method_results, violations
from training.probe.run import Runs
from training.probe.tasks import TASKS


def probe(settings, command):
    """Does, or goes on with, the runs of `settings`.

    Args:
        settings: a `Settings` without problems.
        command: the command line, for the record.

    Returns:
        The report, Markdown.

    Raises:
        ValueError: if the folder cannot be used, training diverges, or, once the report is
            written, a score is above what is possible.
    """
    tuner = FineTuner.of(settings)
    rows_per_part(settings.batch_size, tuner.machine, settings.micro_batches)
    runs = Runs(settings, tuner)
    out = pathlib.Path(settings.out)
    with Grid(out, "probe") as grid:
        done = _trained(runs, grid)
        bounds = ceilings(runs.tests, settings.length)
        methods = {
            variant.label: method_results(variant, settings.seeds, done)
            for variant in settings.variants
        }
        results = {
            "command": command,
            "commit": grid.commits(done),
            "machine": machine_kind(),
            "settings": settings.identity(),
            "seeds": settings.seeds,
            "tasks": {name: TASKS[name].summary for name in settings.task_names},
            "seconds": sum(metrics["seconds"] for metrics in done.values()),
            "methods": methods,
            "ceilings": bounds,
            "violations": violations(methods, bounds),
        }
        results["findings"] = [record(*item) for item in answers(results).items()]
        text = page(results)
        write(out, results, text)
    if results["violations"]:
        raise ValueError("\n".join(results["violations"]))
    return text


def _trained(runs, grid):
    """Returns what the runs' metrics are, by folder."""
    try:
        return runs.run(grid)
    except NonFiniteError as error:
        raise ValueError(
            f"The loss or its gradient is not finite at step {error.step}. Lower "
            f"--learning-rate. Received: learning_rate={runs.settings.learning_rate}"
        ) from None
