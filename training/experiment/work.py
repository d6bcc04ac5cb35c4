"""An experiment: planned, done or gone on with, and reported; or all of them, listed."""

import os
import pathlib
import sys

from keras_tupe._commit import commit
from training.command.child import Stop
from training.command.folder_lock import FolderLock
from training.command.report_files import names_of
from training.command.tables import table
from training.experiment import report
from training.experiment.definition import SCALES, find, names
from training.experiment.plan import hours_text, make_plan, nominal_device, plan_text
from training.experiment.results import collect_results
from training.experiment.settings import Settings, begin
from training.machine.cost import H200, TWO_CORES, find_device


def experiment(settings, command):
    """Prints the plan of an experiment, does it or goes on with it, and reports.

    Args:
        settings: a `Settings` without problems.
        command: the command line, for the record.

    Raises:
        ValueError: if something cannot be used, or a command of the plan fails.
        KeyboardInterrupt: if it was asked to stop.
    """
    definition = find(settings.name)
    precision = settings.precision or definition.scales[settings.scale].precision
    device, machine = find_device(precision, settings.peak_flops, settings.utilisation)
    plan = make_plan(definition, settings, device)
    print(plan_text(plan, device), flush=True)
    if settings.plan:
        return
    out = pathlib.Path(settings.out)
    with FolderLock(out, "experiment"):
        begin(out, settings.identity(), command)
        run(plan)
        origin = {
            "command": command,
            "commit": commit(),
            "machine": machine,
            "overrides": settings.overrides(),
        }
        print(report.write(out, plan, collect_results(plan, out), origin))
    print("\n" + names_of(out, *report.FILES))


def run(plan):
    """Runs the commands of a plan, one after the other, each in a process of its own.

    Args:
        plan: a `Plan`.

    Raises:
        ValueError: if one fails; what is done stays.
        KeyboardInterrupt: if it was asked to stop.
    """
    with Stop() as stop:
        for number, command in enumerate(plan.commands, 1):
            print(
                f"experiment: {number} of {len(plan.commands)}: {command.what}",
                file=sys.stderr,
                flush=True,
            )
            if command.makes and os.path.exists(command.makes):
                continue
            status = stop.run(command.module, command.words)
            if stop.received:
                raise KeyboardInterrupt
            if status != 0:
                raise ValueError(
                    "A command of the plan failed, for the reason told above; what is done stays, "
                    f"and the same command goes on from there. Received: status {status} of "
                    f"`{command}`"
                )


def list_text():
    """Returns the experiments that come with the package, with what they ask and take."""
    rows, questions = [], []
    for name in names():
        experiment, hours = find(name), []
        for scale in SCALES:
            plan = scale in experiment.scales and make_plan(
                experiment, Settings(name=name, scale=scale), nominal_device(scale)
            )
            hours.append(hours_text(plan.cost) if plan else "-")
        rows.append([name, *hours])
        paper = f"{experiment.source.paper} {experiment.source.place}."
        questions.append(f"{name}: {experiment.question}\n    {paper}")
    notes = (
        f"Hours of `laptop` on {TWO_CORES.name}; of the others on {H200.name}, at "
        f"{H200.utilisation:.0%} of its peak. --plan tells those of your device."
    )
    hours = table(["experiment", *(f"{scale}, hours" for scale in SCALES)], rows)
    return "\n\n".join(["\n".join(questions), hours, notes])
