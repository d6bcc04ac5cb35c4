"""The runs of an ablation, one after the other."""

import sys
import time

import keras

from keras_tupe import data
from training.ablate import runs
from training.ablate.settings import command_words
from training.ablate.tasks import check_equal, tasks_of
from training.command.child import Stop
from training.machine import time_left
from training.machine.facts import machine_facts
from training.pretrain import run as pretrain_run
from training.pretrain.report import duration


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
        self._check(run, rows)
        self._todo = [cell for cell in self._cells if not self._is_done(cell)]
        self.machine = self._plan(time_left.run_cost(run, rows)) if self._todo else None

    def _plan(self, cost):
        """Prints what is about to be done; returns the kind of the machine."""
        settings = self._settings
        machine, device_peak = machine_facts(settings.precision)
        peak = settings.peak_flops or device_peak
        guess = time_left.guessed_seconds(cost, peak, machine["gpu"] is not None)
        self._time = time_left.TimeLeft(guess)
        for cell in self._cells:
            if self._is_trained(cell):
                trained, tested = time_left.recorded_seconds(self._folder(cell))
                self._time.add_training(trained)
                if self._tasks and cell not in self._todo:
                    self._time.add_tests(tested)
        work = time_left.Work(len(settings.variants), settings.seeds, *self._left(self._todo))
        print(time_left.plan_table(cost, work, self._time, peak), flush=True)
        return machine

    def _left(self, cells):
        """Returns how many of the cells are to be trained, and tested (`None`: no tests)."""
        untrained = sum(not self._is_trained(cell) for cell in cells)
        return untrained, len(cells) if self._tasks else None

    def _check(self, run, rows):
        """Refuses a folder of another ablation, before anything is changed in it."""
        settings = self._settings
        valid = data.PreparedRows(settings.data, "valid")
        facts = pretrain_run.data_facts(rows, valid)
        facts = runs.facts_of(run, facts, keras.backend.backend())
        found = runs.find_runs(settings.out)
        runs.check_belongs(settings.out, found, facts, settings.variants)
        check_equal(settings.out, self._tasks)
        for variant in settings.variants:
            runs.keep_method_file(settings.out, variant)

    def _folder(self, cell):
        return runs.run_folder(self._settings.out, *cell)

    def _is_trained(self, cell):
        return runs.is_finished(self._folder(cell))

    def _is_done(self, cell):
        folder = self._folder(cell)
        return self._is_trained(cell) and all(task.is_done(folder, cell[0]) for task in self._tasks)

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
            words = command_words(self._settings.pretraining(variant, seed, folder))
            stop.run("training.pretrain", words)
            if not self._is_trained(cell):
                return False
            if not was_begun:
                self._time.add_training(time.monotonic() - start)
        runs.remove_checkpoints(folder)
        start, was_begun = time.monotonic(), any((folder / t.name).exists() for t in self._tasks)
        for task in self._tasks:
            if not task.is_done(folder, variant):
                stop.run(task.module, task.words(folder, variant))
                if not task.is_done(folder, variant):
                    return False
        if self._tasks and not was_begun:
            self._time.add_tests(time.monotonic() - start)
        return True


def _say(text):
    print(f"ablate: {text}", file=sys.stderr, flush=True)
