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
from training.command.durations import duration
from training.command.folder_lock import FolderLock

SETTINGS, METRICS, ORIGIN = "settings.json", "metrics.json", "origin.json"


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
        program: as for `FolderLock`.

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

    def __init__(self, out, program=None):
        self.out = pathlib.Path(out)
        self._lock = FolderLock(out, program)

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

    def run(self, cells, do, describe=None):
        """Does all runs that are not there yet, one after the other.

        Args:
            cells: list of `Cell`.
            do: function (cell, folder) -> metrics, a dictionary that JSON can hold; what it writes
                into the empty folder is kept with them.
            describe: function of a run's metrics -> text beside the bar, or `None`.

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
                    metrics = do(cell, folder)
                    write_json(folder / SETTINGS, cell.settings)
                    write_json(folder / ORIGIN, origin)
                    write_json(folder / METRICS, metrics)
                found[cell.name] = self.metrics(cell)
                bar.update()
                done, left = done + cell.work, left - cell.work
                seconds = (time.monotonic() - start) / done * left
                text = f": {describe(metrics)}" if describe else ""
                _say(f"run {number} of {len(todo)}, {cell.name}{text}; {duration(seconds)} left")
        return found

    def _tidy(self, cell):
        folder = self.out / cell.name
        for partial in folder.parent.glob(f".{folder.name}.*.partial"):
            shutil.rmtree(partial, ignore_errors=True)


def _say(text):
    tqdm.tqdm.write(text, file=sys.stderr)
