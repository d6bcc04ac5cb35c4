"""The ablations of several objectives, one after the other, and the report on all of them."""

import dataclasses
import os
import pathlib
import sys

from keras_tupe._commit import commit
from keras_tupe.data import write_json
from training.ablate.objectives import report
from training.ablate.objectives.results import RunCost, collect_all
from training.ablate.objectives.settings import (
    RUNS,
    ablations,
    flops_of_step,
    names_of,
    objectives_in,
)
from training.ablate.report import recorded_machine
from training.ablate.runs import find_runs
from training.ablate.work import ablate, check_folder
from training.command.folder_lock import FolderLock
from training.command.report_files import names_of as file_names
from training.command.variant import label_of


def compare(settings, command):
    """Does, or goes on with, the ablations of all objectives of `settings`.

    Args:
        settings: a `Settings` without problems.
        command: the command line, for the record.

    Returns:
        Names of the runs that failed.

    Raises:
        ValueError: if something does not fit together.
        KeyboardInterrupt: if it was asked to stop.
    """
    out = pathlib.Path(settings.out)
    with FolderLock(out, "ablate"):
        if (out / RUNS).is_dir():
            raise ValueError(
                "--out must be a new folder, or one of a comparison of objectives. "
                f"Received: {settings.out!r}, which holds the runs of one ablation"
            )
        names, todo = _todo(settings)
        failed = []
        for name, one in todo.items():
            print(f"ablate: objective {name}, in {one.out}", file=sys.stderr, flush=True)
            failed += [f"{name}, {run}" for run in ablate(one, command)]
            text = _report(settings, names, command)
        if text is not None:
            print(text)
    print("\n" + file_names(settings.out, *report.FILES))
    return failed


def _todo(settings):
    """Returns the names of all objectives, and the settings of the ablations to do or report on."""
    if settings.report_only:
        there = objectives_in(settings.out)
        names = [name for name in names_of(settings) or there if name in there]
        alone = dataclasses.replace(settings, objectives=())
        todo = {
            name: dataclasses.replace(alone, out=os.path.join(settings.out, name))
            for name in names
            if _has_results(os.path.join(settings.out, name))
        }
        if not todo:
            raise ValueError(
                "There must be a finished run at least, with its preset, for a report. "
                f"Received: {settings.out!r}, with ablations of {there or 'no objective'}"
            )
        return names, todo
    todo = ablations(settings)
    for one in todo.values():  # all of them before the first begins
        check_folder(one)
    record = pathlib.Path(settings.out, report.JSON)
    if not record.exists():  # by which the folder is known from now on
        write_json(record, {"objectives": list(todo)})
    print(report.cost_table({name: _planned(one) for name, one in todo.items()}), flush=True)
    return list(todo), todo


def _planned(settings):
    """Returns the `RunCost` of the runs of an ablation of one objective."""
    from keras_tupe.data import PreparedRows

    length = PreparedRows(settings.data, "train").length
    tokens = settings.steps * settings.batch_size * length
    return RunCost(settings.steps, tokens, flops_of_step(settings))


def _has_results(out):
    return any(run.is_finished for run in find_runs(out))


def _report(settings, names, command):
    """Writes the report of what is finished; returns its text, `None` if nothing is."""
    if not any(_has_results(os.path.join(settings.out, name)) for name in names):
        return None
    found = collect_all(settings.out, names, label_of(settings.baseline))
    machine = next(
        filter(None, (recorded_machine(os.path.join(settings.out, name)) for name in names)), None
    )
    origin = {"command": command, "commit": commit(), "machine": machine}
    return report.write(settings.out, found, origin)
