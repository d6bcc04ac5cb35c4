"""Compares positional methods: equal data, masks and trunk weights, several seeds, paired tests.

    python -m training.ablate --config laptop --positions none absolute tupe_r --seeds 3 \\
        --data rows --out ablations/first
    python -m training.ablate --positions absolute bert_r bert_r:max_distance=16 --seeds 5 \\
        --data rows --size tiny --steps 3000 --batch-size 32 --learning-rate 2e-3 --out ablations/b
    python -m training.ablate --report-only --out ablations/first

Each run is one of `training.pretrain`, in `OUT/runs/METHOD/seed-K/`; all methods of a seed come
before the next seed. The same command goes on where it was stopped or killed, and more methods or
seeds may be added. The result: `ablation.md`, `ablation.json` and `ablation.png`, of all runs that
are finished. With `--tasks`, `--squad-train` or `--blimp` the model of each run is tested too, and
`tasks.png` shows the scores.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import sys

from keras_tupe._commit import commit
from training.ablate import report
from training.ablate import work as ablate_work
from training.ablate.checks import label_of
from training.ablate.collect import collect
from training.ablate.runs import find_runs
from training.ablate.settings import Settings
from training.command.folder_lock import FolderLock
from training.command.kinds import nearest
from training.command.report_files import names_of
from training.command.settings import COMMAND_LINE, parse
from training.command.shell import command_of, sentences
from training.machine.kind import machine_kind


def ablate(settings, command):
    """Does, or goes on with, the ablation of `settings`.

    Args:
        settings: a `Settings` without problems.
        command: the command line, for the record.

    Returns:
        Names of the runs that failed.

    Raises:
        ValueError: if something does not fit together.
        KeyboardInterrupt: if it was asked to stop.
    """
    baseline = label_of(settings.baseline)
    origin = {"command": command, "commit": commit()}
    with FolderLock(settings.out, "ablate"):
        origin["machine"] = report.recorded_machine(settings.out)
        failed = []
        if not settings.report_only:
            work = ablate_work.Work(settings)
            origin["machine"] = work.machine or origin["machine"] or machine_kind()
            failed = work.run(lambda: _report(settings, baseline, origin))
        if failed and not any(run.is_finished for run in find_runs(settings.out)):
            return failed
        print(_report(settings, baseline, origin))
    print("\n" + names_of(settings.out, *report.FILES))
    return failed


def _report(settings, baseline, origin):
    ablation = collect(settings.out, baseline)
    is_wish = settings.report_only and settings.given.get("baseline") == COMMAND_LINE
    if is_wish and baseline not in ablation.methods:
        raise ValueError(
            f"--baseline must be one of the methods that are there, {list(ablation.methods)}; "
            f"the nearest is {nearest(baseline, ablation.methods)!r}. Received: {baseline!r}"
        )
    return report.write(settings.out, ablation, origin)


def main(arguments=None):
    """Runs the command line."""
    settings = parse(Settings, arguments, description=__doc__)
    with sentences("ablate", "The same command goes on from here."):
        failed = ablate(settings, command_of("ablate", arguments))
    if failed:
        sys.exit(
            "ablate: Some runs failed, for the reasons told above; the same command tries them "
            f"again. Received: {'; '.join(failed)}"
        )


if __name__ == "__main__":
    main()
