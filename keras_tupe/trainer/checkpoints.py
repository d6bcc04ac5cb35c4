"""Checkpoints of a run: whole or not there, for every backend."""

import hashlib
import json
import os
import pathlib
import re
import shutil

import numpy as np

from keras_tupe._array_file import read_npz
from keras_tupe._json_file import read_json_object

FORMAT = 1
_ARRAYS, _RECORD = "state.npz", "checkpoint.json"
_NAME = re.compile(r"step_(\d{10})")


class Checkpoints:
    """A folder of checkpoints, one folder each: `step_0000001000/`.

    A checkpoint is written beside where it belongs, flushed to the disk and renamed; so whatever is
    killed, each folder with such a name is complete. It holds a NumPy archive `state.npz` and
    `checkpoint.json` with the step, the archive's hash and what the caller adds. No code is run
    when one is read.

    Args:
        folder: path; made when something is saved.
        keep: how many of the newest stay, at least 1.
        keep_steps: steps whose checkpoints stay for good.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     checkpoints = Checkpoints(folder, keep=1)
        ...     for step in (1, 2):
        ...         checkpoints.save(step, {"w": np.full(3, step)}, {"note": "mine"})
        ...     checkpoints.steps(), checkpoints.read(2)[0]["w"].tolist()
        ([2], [2, 2, 2])
    """

    def __init__(self, folder, keep=2, keep_steps=()):
        if keep < 1:
            raise ValueError(f"`keep` must be at least 1. Received: keep={keep!r}")
        self.folder = pathlib.Path(folder)
        self.keep = keep
        self.keep_steps = frozenset(keep_steps)

    def steps(self):
        """Returns the steps of the checkpoints that are there, ascending."""
        if not self.folder.is_dir():
            return []
        found = (_NAME.fullmatch(entry.name) for entry in self.folder.iterdir())
        return sorted(int(match[1]) for match in found if match)

    def latest(self):
        """Returns the last step, or `None`."""
        return next(reversed(self.steps()), None)

    def path(self, step):
        """Returns the folder of a checkpoint.

        Args:
            step: number of steps done.
        """
        return self.folder / f"step_{step:010d}"

    def save(self, step, arrays, facts):
        """Writes a checkpoint, then removes those that need not stay.

        Args:
            step: number of steps done.
            arrays: dictionary, name -> NumPy array.
            facts: dictionary of JSON values; `format`, `step` and `sha256` are added.

        Raises:
            OSError: if there is no room. Earlier checkpoints are as they were.
        """
        if self.path(step).exists():
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        self.tidy()
        partial = self.folder / f".partial_{step}"
        try:
            partial.mkdir()
            with open(partial / _ARRAYS, "wb") as file:
                np.savez(file, **arrays)
                _flush(file)
            record = {"format": FORMAT, "step": step, "sha256": _hash(partial / _ARRAYS), **facts}
            with open(partial / _RECORD, "w", encoding="utf-8") as file:
                json.dump(record, file, indent=1)
                _flush(file)
            _flush_folder(partial)
            partial.rename(self.path(step))
        except OSError:
            shutil.rmtree(partial, ignore_errors=True)
            raise
        _flush_folder(self.folder)
        self.tidy()

    def read(self, step):
        """Reads a checkpoint.

        Args:
            step: one of `steps()`.

        Returns:
            `(arrays, facts)` as they were saved.

        Raises:
            ValueError: if it is damaged, or of a newer format; the message names the folder.
        """
        folder = self.path(step)
        record = self.read_facts(step)
        try:
            if _hash(folder / _ARRAYS) != record["sha256"]:
                raise ValueError(f"{_ARRAYS} is not what was written")
            arrays = read_npz(folder / _ARRAYS)
        except (OSError, ValueError, KeyError) as error:
            raise self._damaged(folder, error) from None
        return arrays, record

    def read_facts(self, step):
        """Reads what a checkpoint says about itself; see `read`.

        Args:
            step: one of `steps()`.
        """
        folder = self.path(step)
        try:
            record = read_json_object(folder / _RECORD)
            number = record["format"]
            if type(number) is not int:
                raise ValueError(f"format={number!r}")
        except (OSError, ValueError, KeyError) as error:
            raise self._damaged(folder, error) from None
        if number > FORMAT:
            raise ValueError(
                "The checkpoint was written by a newer version of this package. Update it to go "
                f"on from there. Received: {str(folder)!r} of format {number}, this version reads "
                f"formats up to {FORMAT}"
            )
        return record

    def tidy(self):
        """Removes checkpoints that need not stay, and what a killed process left of others."""
        for rest in [*self.folder.glob(".partial_*"), *self.folder.glob(".old_*")]:
            shutil.rmtree(rest, ignore_errors=True)
        for old in self.steps()[: -self.keep]:
            if old not in self.keep_steps:
                self._remove(old)

    def _remove(self, step):
        old = self.folder / f".old_{step}"
        self.path(step).rename(old)  # at once: a part of a checkpoint never has its name
        shutil.rmtree(old, ignore_errors=True)

    def _damaged(self, folder, error):
        others = [self.path(step).name for step in self.steps() if self.path(step) != folder]
        before = f" from {others[-1]}" if others else " from the start"
        return ValueError(
            f"The checkpoint is damaged: {error}. Remove its folder to go on{before}. "
            f"Received: {str(folder)!r}"
        )


def _hash(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _flush(file):
    file.flush()
    os.fsync(file.fileno())


def _flush_folder(folder):
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
