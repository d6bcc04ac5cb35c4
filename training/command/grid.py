"""Many runs in one folder: each is whole or not there, so that a stopped grid goes on."""

import dataclasses
import json
import pathlib
import shutil
import sys
import time

import tqdm

from keras_tupe._commit import commit
from keras_tupe._json_file import read_json_object
from keras_tupe._new_folder import new_folder
from keras_tupe.data import write_json
from keras_tupe.trainer import NonFiniteError
from training.command.folder_lock import FolderLock
from training.command.report import duration

SETTINGS, METRICS, ORIGIN = "settings.json", "metrics.json", "origin.json"
DIVERGED = "not_finite_at_step"  # the one metric of a run that diverged


@dataclasses.dataclass(frozen=True)
class Cell:
    """A run of a grid.

    Attributes:
        name: its folder, relative to that of the grid, such as `cola/lr-2e-05/seed-0`.
        settings: what it is made with, a dictionary that JSON can hold.
        work: how long it takes, in any unit that all cells of a grid share.
    """

    name: str
    settings: dict
    work: float = 1.0


class Grid:
    """Runs of one command, in the folders of a folder that is locked meanwhile.

    A context manager. What a killed process left half-done of a run is removed when it is its turn.

    Args:
        out: the folder, made if needed.
        program, makes: as for `FolderLock`.

    Raises:
        ValueError: from `with`, if another process works in the folder, or it is of another
            program.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as out, Grid(out) as grid:
        ...     cells = [Cell(f"seed-{seed}", {"seed": seed}) for seed in range(2)]
        ...     grid.run(cells, lambda cell, folder: {"score": 10 * cell.settings["seed"]})
        {'seed-0': {'score': 0}, 'seed-1': {'score': 10}}
    """

    def __init__(self, out, program=None, makes=()):
        self.out = pathlib.Path(out)
        self._lock = FolderLock(out, program, makes=makes)

    def __enter__(self):
        self._lock.__enter__()
        return self

    def __exit__(self, *exception):
        self._lock.__exit__(*exception)

    def metrics(self, cell):
        """Returns the metrics of a run, or `None` if it is still to be done.

        Raises:
            ValueError: if a run of this name was made with other settings.
        """
        folder = self.out / cell.name
        if not folder.exists():
            return None
        try:
            before, found = (read_json_object(folder / name) for name in (SETTINGS, METRICS))
        except (OSError, ValueError):
            raise ValueError(
                f"A run's folder must hold {SETTINGS} and {METRICS}; move this one away. "
                f"Received: {str(folder)!r}"
            ) from None
        now = json.loads(json.dumps(cell.settings))
        names = sorted(name for name in {*before, *now} if before.get(name) != now.get(name))
        if names:
            changes = "; ".join(f"{n}: {before.get(n)!r} -> {now.get(n)!r}" for n in names)
            raise ValueError(
                "A run in --out was made with other settings. Give another --out, or the settings "
                f"of before. Received: {cell.name}, {changes}"
            )
        return found

    def commits(self, names):
        """Returns the commits of the source that runs were made with, in a text for the record.

        Args:
            names: names of runs that are there.
        """
        found = set()
        for name in names:
            try:
                found.add(str(read_json_object(self.out / name / ORIGIN)["commit"]))
            except (OSError, ValueError, KeyError):
                found.add("unknown")
        return ", ".join(sorted(found))

    def run(self, cells, do, describe=None, may_diverge=False):
        """Does all runs that are not there yet, one after the other.

        Args:
            cells: list of `Cell`.
            do: function (cell, folder) -> metrics, a dictionary that JSON can hold; what it writes
                into the empty folder is kept with them.
            describe: function of a run's metrics -> text beside the bar, or `None`.
            may_diverge: whether a run whose training diverges is a result too, with the metrics
                `{DIVERGED: step}`, and the others go on. Defaults to `False`: it ends the grid.

        Returns:
            Dictionary: name -> metrics, in the order of the cells, as read back from JSON.

        Raises:
            ValueError: as `metrics`, before any run begins.
        """
        found = {cell.name: self.metrics(cell) for cell in cells}
        todo = [cell for cell in cells if found[cell.name] is None]
        if len(todo) < len(cells):
            _say(f"{len(cells) - len(todo)} of {len(cells)} runs are there already.")
        is_terminal = sys.stderr.isatty()
        bar = tqdm.tqdm(total=len(todo), unit="run", leave=False, disable=not is_terminal)
        start, left = time.monotonic(), sum(cell.work for cell in todo)
        done, origin = 0, {"commit": commit()}
        with bar:
            for number, cell in enumerate(todo, 1):
                bar.set_description(cell.name)
                self._tidy(cell)
                with new_folder(self.out / cell.name) as folder:
                    try:
                        metrics = do(cell, folder)
                    except NonFiniteError as error:
                        if not may_diverge:
                            raise
                        metrics = {DIVERGED: error.step}
                    write_json(folder / SETTINGS, cell.settings)
                    write_json(folder / ORIGIN, origin)
                    write_json(folder / METRICS, metrics)
                found[cell.name] = self.metrics(cell)
                bar.update()
                done, left = done + cell.work, left - cell.work
                seconds = (time.monotonic() - start) / done * left
                text = f": {describe(metrics)}" if describe and DIVERGED not in metrics else ""
                if DIVERGED in metrics:
                    text = f": diverged at step {metrics[DIVERGED]}"
                _say(f"run {number} of {len(todo)}, {cell.name}{text}; {duration(seconds)} left")
        return found

    def _tidy(self, cell):
        folder = self.out / cell.name
        for partial in folder.parent.glob(f".{folder.name}.*.partial"):
            shutil.rmtree(partial, ignore_errors=True)


def converged(found, learning_rate):
    """Returns the metrics of the runs that did not diverge, and the steps at which others did.

    Args:
        found: what `Grid.run` returned.
        learning_rate: that of the runs, for the error.

    Returns:
        Two dictionaries by the names of the runs.

    Raises:
        ValueError: if all runs diverged.
    """
    diverged = {name: one[DIVERGED] for name, one in found.items() if DIVERGED in one}
    if len(diverged) == len(found):
        raise ValueError(
            "The loss or its gradient is not finite at step "
            f"{', '.join(map(str, diverged.values()))}. Lower --learning-rate, with another --out. "
            f"Received: learning_rate={learning_rate}"
        )
    return {name: one for name, one in found.items() if name not in diverged}, diverged


def told(diverged):
    """Returns a sentence on runs that diverged, in a list; none if there are none."""
    steps = [f"{name} at step {step}" for name, step in diverged.items()]
    return [f"Diverged, and in no number here: {', '.join(steps)}."] if steps else []


def _say(text):
    tqdm.tqdm.write(text, file=sys.stderr)
