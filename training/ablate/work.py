"""The runs of an ablation, one after the other, and the report on them."""

import dataclasses
import math
import sys
import time

import keras

from keras_tupe import data
from keras_tupe._commit import commit
from training.ablate import report, runs
from training.ablate.results import collect
from training.ablate.tasks import check_equal, tasks_of
from training.command.child import Stop
from training.command.durations import duration
from training.command.folder_lock import FolderLock
from training.command.kinds import nearest
from training.command.report_files import names_of
from training.command.settings import COMMAND_LINE
from training.command.tables import table
from training.command.variant import label_of
from training.command.words import words
from training.machine.cost import TimeLeft, find_device, pretraining
from training.machine.kind import machine_kind
from training.presets.of_run import preset_at
from training.pretrain.identity import data_facts


def check_folder(settings):
    """Refuses a folder of another ablation, before anything is changed in it.

    Args:
        settings: a `Settings` of `training.ablate` without problems.

    Raises:
        ValueError: naming what differs.
    """
    rows, valid = (data.PreparedRows(settings.data, part) for part in ("train", "valid"))
    run = settings.pretraining(settings.variants[0], 0, settings.out)
    facts = data_facts(rows, valid)
    facts = runs.facts_of(run, facts, keras.backend.backend())
    found = runs.find_runs(settings.out)
    runs.check_belongs(settings.out, found, facts, settings.variants)
    check_equal(settings.out, tasks_of(settings, rows.length))
    for variant in settings.variants:
        runs.keep_method_file(settings.out, variant)


class Work:
    """All runs that an ablation asks for; those that are there are not done again.

    Args:
        settings: a `Settings` of `training.ablate` without problems.

    Attributes:
        machine: kind of the machine; `None` if there is nothing to do.

    Raises:
        ValueError: if the folder holds runs of another ablation, or the rows cannot be read.
    """

    def __init__(self, settings):
        self._settings = settings
        rows = data.PreparedRows(settings.data, "train")
        self._tasks = tasks_of(settings, rows.length)
        self._cells = [
            (variant, seed) for seed in range(settings.seeds) for variant in settings.variants
        ]
        run = settings.pretraining(*self._cells[0], settings.out)
        check_folder(settings)
        self._steps = [step for step in run.preset_step_numbers() if step < run.steps]
        self._check_presets()
        self._todo = [cell for cell in self._cells if not self._is_done(cell)]
        self.machine = self._plan(run, rows) if self._todo else None

    def _plan(self, run, rows):
        """Prints what is about to be done; returns the kind of the machine."""
        settings = self._settings
        device, machine = find_device(settings.precision, settings.peak_flops)
        valid = data.PreparedRows(settings.data, "valid")
        batches = math.ceil(len(valid) / run.batch_size)
        batches = min(run.valid_batches or batches, batches)
        known = dataclasses.replace(run, valid_batches=batches)
        costs = [
            pretraining(known, rows.length, rows.vocabulary.size, variant.label, device)
            for variant, _ in self._todo
        ]
        self._time = TimeLeft(sum(cost.seconds for cost in costs) / len(costs))
        for cell in self._cells:
            if self._is_trained(cell):
                trained, tested = runs.recorded_seconds(self._folder(cell))
                self._time.trained.append(trained + device.start_seconds)  # logs begin later
                if self._tasks and cell not in self._todo:
                    self._time.tested.append(tested)
        work = Amount(len(settings.variants), settings.seeds, *self._left(self._todo))
        epochs = run.steps * run.batch_size / len(rows)
        print(plan_table(run.steps, epochs, costs[0], work, self._time, device), flush=True)
        return machine

    def _left(self, cells):
        """Returns how many of the cells are to be trained, and tested (`None`: no tests)."""
        untrained = sum(not self._is_trained(cell) for cell in cells)
        return untrained, len(cells) if self._tasks else None

    def _folder(self, cell):
        return runs.run_folder(self._settings.out, *cell)

    def _is_trained(self, cell):
        return runs.is_finished(self._folder(cell))

    def _check_presets(self):
        """Refuses steps on the way whose models a finished run does not have any more."""
        for cell in self._cells:
            folder = self._folder(cell)
            gone = [step for step in self._steps if not preset_at(folder, step).exists()]
            if gone and self._is_trained(cell):
                raise ValueError(
                    "--preset-steps must be those that the finished runs were trained with. "
                    f"Received: {', '.join(map(str, gone))}, of which {str(folder)!r} has no preset"
                )

    def _wanted_tests(self):
        """Returns pairs of a `Task` and the step of the preset, `None` for the last one."""
        return [(task, step) for step in (None, *self._steps) for task in self._tasks]

    def _is_done(self, cell):
        folder = self._folder(cell)
        return self._is_trained(cell) and all(
            task.is_done(folder, step) for task, step in self._wanted_tests()
        )

    def run(self, report):
        """Does the runs that are to be done.

        Args:
            report: function that is called after each.

        Returns:
            Names of the runs that failed.

        Raises:
            KeyboardInterrupt: if it was asked to stop.
        """
        failed = []
        for cell in self._cells:  # a kill may have left some
            runs.remove_checkpoints(self._folder(cell))
        with Stop() as stop:
            for number, cell in enumerate(self._todo):
                name = f"{cell[0].label}, seed {cell[1]}"
                trainings, tests = self._left(self._todo[number:])
                left = self._time.seconds(trainings, tests or 0)
                _say(f"run {number + 1} of {len(self._todo)}: {name}; about {duration(left)} left")
                if not self._run(cell, stop):
                    failed.append(name)
                elif not stop.received:
                    report()
                if stop.received:
                    raise KeyboardInterrupt
        return failed

    def _run(self, cell, stop):
        """Trains and tests one model; returns whether all of it went well."""
        variant, seed = cell
        folder, start = self._folder(cell), time.monotonic()
        was_begun = folder.exists()
        if not self._is_trained(cell):
            run = self._settings.pretraining(variant, seed, folder)
            # a warm-up that is not given would follow the steps
            stop.run("training.pretrain", words(run, always=("warmup_steps",)))
            if not self._is_trained(cell):
                return False
            if not was_begun:
                self._time.trained.append(time.monotonic() - start)
        runs.remove_checkpoints(folder)
        tests = self._wanted_tests()
        start, was_begun = time.monotonic(), any(t.folder(folder, s).exists() for t, s in tests)
        for task, step in tests:
            if not task.is_done(folder, step):
                stop.run(task.module, task.words(folder, variant, step))
                if not task.is_done(folder, step):
                    return False
        if self._tasks and not was_begun:
            self._time.tested.append(time.monotonic() - start)
        return True


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
            work = Work(settings)
            origin["machine"] = work.machine or origin["machine"] or machine_kind()
            failed = work.run(lambda: _report(settings, baseline, origin))
        if failed and not any(run.is_finished for run in runs.find_runs(settings.out)):
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


def _say(text):
    print(f"ablate: {text}", file=sys.stderr, flush=True)


@dataclasses.dataclass(frozen=True)
class Amount:
    """How much an ablation asks for, and how much of it is to be done.

    Attributes:
        num_variants, num_seeds: their product is the number of runs.
        num_trainings: runs that are to be trained.
        num_tests: runs whose models are to be tested; `None` if there are no tests.
    """

    num_variants: int
    num_seeds: int
    num_trainings: int
    num_tests: int | None = None


def plan_table(steps, epochs, cost, work, time_left, device):
    """Returns what is about to be done, as a table.

    Args:
        steps, epochs: of a run.
        cost: its `Cost`.
        work: an `Amount`.
        time_left: a `TimeLeft`.
        device: the `Device`.
    """
    basis = (
        "as long as the finished ones took"
        if time_left.trained
        else f"a guess, of the device's {device.peak_flops / 1e12:.3g} TFLOP/s in matrix products "
        f"and {2 * device.start_seconds:.0f} s to start and end a run"
    )
    methods = f"{work.num_variants} method{'s' * (work.num_variants != 1)}"
    seeds = f"{work.num_seeds} seed{'s' * (work.num_seeds != 1)}"
    runs = f"{work.num_variants * work.num_seeds} ({methods}, {seeds})"
    time = f"about {duration(time_left.seconds(work.num_trainings, 0))} ({basis})"
    rows = [
        ["runs", f"{runs}, {work.num_trainings} to train"],
        ["steps of a run", f"{steps:,}"],
        ["tokens of a run", f"{cost.tokens:,} ({epochs:.3g} epochs of the rows)"],
        ["FLOPs of a run", f"{cost.flops:.3g}"],
        ["FLOPs to do", f"{cost.flops * work.num_trainings:.3g}"],
        ["time of training", time if work.num_trainings else "none"],
        ["time of tests", _tests(work.num_tests, time_left)],
    ]
    return table(["what", "how much"], rows)


def _tests(count, time_left):
    if count is None:
        return "no tests"
    seconds = time_left.seconds(0, count)
    time = f"about {duration(seconds)}" if seconds or not count else "known after the first"
    return f"{time}, {count} model{'s' * (count != 1)} to test"
