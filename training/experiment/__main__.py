"""The papers' experiments, each by its name: planned, run and reported beside the paper.

    python -m training.experiment --list
    python -m training.experiment tupe-table1 --scale laptop --plan
    python -m training.experiment tupe-table1 --scale laptop --data rows --glue glue --out table1

Scales: `laptop` is an hour or two on two cores, `gpu-hour` and `gpu-day` are that on one large
GPU, `paper` is what the paper did. The rows of text must have the length of the scale (128 tokens
for a laptop); `--plan` tells what will run, its FLOPs and the hours on the device that is found.

An experiment runs `training.ablate`, `training.convert` and `training.finetune_squad` in OUT; the
same command goes on where it was stopped. At the end: `report.md`, `report.json` and `report.png`,
with the paper's numbers and ours in tables of their own, and what differs between them.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import pathlib
import sys

from keras_tupe._commit import commit
from training.command.child import Stop
from training.command.folder_lock import FolderLock
from training.command.report_files import names_of
from training.command.settings import parse
from training.command.shell import command_of, sentences
from training.experiment import folder, report
from training.experiment.definition import find
from training.experiment.plan import make_plan
from training.experiment.results import collect_results
from training.experiment.settings import Settings
from training.experiment.words import list_text, plan_text
from training.machine.plan_device import find_device


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
    device, machine = find_device(settings, precision)
    plan = make_plan(definition, settings, device)
    print(plan_text(plan, device), flush=True)
    if settings.plan:
        return
    out = pathlib.Path(settings.out)
    with FolderLock(out, "experiment"):
        folder.begin(out, settings.identity(), command)
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


def main(arguments=None):
    """Runs the command line."""
    settings = parse(Settings, arguments, description=__doc__)
    if settings.list:
        print(list_text())
        return
    with sentences("experiment", "The same command goes on from here."):
        experiment(settings, command_of("experiment", arguments))


if __name__ == "__main__":
    main()
