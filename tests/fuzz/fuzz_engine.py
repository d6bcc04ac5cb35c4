"""Damages the files of a reader, reads them, and tells a refusal from a finding.

A reader answers damaged files with a value or with one clear error: `ValueError`, one of ours under
it, or `FileNotFoundError`, whose message says what was received, or the system's own error with the
name of a file that it cannot open. Anything else is a finding.
"""

import dataclasses
import fnmatch
import pathlib
import random as random_numbers
import re
import shutil
import time
import traceback
import warnings
from collections.abc import Callable

from fuzz_archives import (
    changed_gzip,
    changed_h5,
    changed_keras,
    changed_npy,
    changed_npz,
    changed_safetensors,
    changed_spm,
    changed_torch,
)
from fuzz_bytes import changed_bytes, changed_text
from fuzz_values import changed_json, changed_json_lines, changed_toml

ACCEPTED, REFUSED, FINDING = "accepted", "refused", "finding"
SLOW_SECONDS = 5.0  # of processors: others may use the machine as well
_BY_SUFFIX = {
    ".json": changed_json,
    ".jsonl": changed_json_lines,
    ".toml": changed_toml,
    ".npz": changed_npz,
    ".npy": changed_npy,
    ".h5": changed_h5,
    ".keras": changed_keras,
    ".safetensors": changed_safetensors,
    ".pt": changed_torch,
    ".bin": changed_torch,
    ".spm": changed_spm,
    ".gz": changed_gzip,
    **dict.fromkeys((".csv", ".tsv", ".txt", ".md"), changed_text),
}


@dataclasses.dataclass(frozen=True)
class Reader:
    """A reader under attack.

    Attributes:
        name: how tables call it.
        write: function of a folder that puts good files there.
        read: function of the folder; it also uses what was read.
        files: patterns of the files to damage, relative to the folder.
        repair: function of the folder that makes recorded hashes right again, or `None`. It is
            called after one damage in two.
        quick: executions in the default tests.
    """

    name: str
    write: Callable
    read: Callable
    files: tuple = ("*",)
    repair: Callable | None = None
    quick: int = 12


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What came of one execution.

    Attributes:
        kind: `ACCEPTED`, `REFUSED` or `FINDING`.
        key: exception and place of a finding; findings of one key have one cause.
        text: the error.
    """

    kind: str
    key: str = ""
    text: str = ""


class Attack:
    """Executions of one reader in a folder of its own.

    Args:
        reader: a `Reader`.
        folder: made; good files are written there once and put back after each execution.
    """

    def __init__(self, reader, folder):
        self.reader = reader
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True)
        reader.write(self.folder)
        self._good = {path: path.read_bytes() for path in _files(self.folder)}
        names = {path.relative_to(self.folder).as_posix(): path for path in self._good}
        self.targets = sorted(
            path
            for name, path in names.items()
            if any(fnmatch.fnmatch(name, pattern) for pattern in reader.files)
        )
        self._states = {path: _state(path) for path in self._good}
        if not self.targets:
            raise AssertionError(f"{reader.name}: there is nothing to damage in {sorted(names)}")

    def good(self):
        """Reads the files as they are; whatever goes wrong is raised."""
        try:
            return self.reader.read(self.folder)
        finally:
            self.put_back()

    def execute(self, seed, number):
        """Damages the files and reads them; returns the `Outcome`."""
        try:
            self.damage(seed, number)
            return self._read()
        finally:
            self.put_back()

    def damage(self, seed, number):
        """Damages the files as execution `number` of a seed does."""
        random = random_numbers.Random(f"{self.reader.name} {seed} {number}")
        for _ in range(random.choice([1, 1, 1, 1, 2, 3])):
            path = random.choice(self.targets)
            _damage(path, random)
        if self.reader.repair is not None and random.random() < 0.5:
            try:
                self.reader.repair(self.folder)
            except Exception:
                return  # the damage left nothing to repair

    def put_back(self):
        """Makes the folder what it was."""
        for path in _files(self.folder):
            if path not in self._good:
                path.unlink()
        for path, content in self._good.items():
            if not path.is_file() or _state(path) != self._states[path]:
                if path.is_dir():
                    shutil.rmtree(path)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
                self._states[path] = _state(path)

    def _read(self):
        start = time.process_time()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.reader.read(self.folder)
            outcome = Outcome(ACCEPTED)
        except (ValueError, OSError) as error:
            outcome = _refusal(error)
        except Exception as error:
            outcome = _finding(error)
        seconds = time.process_time() - start
        if seconds > SLOW_SECONDS:
            return Outcome(FINDING, "slow", f"{seconds:.1f} seconds; {outcome.text}")
        return outcome


def _refusal(error):
    message = str(error)
    is_ours = type(error).__module__.startswith("keras_tupe.")
    is_told = (type(error) in (ValueError, FileNotFoundError) or is_ours) and "Received" in message
    of_system = isinstance(error, OSError) and error.filename is not None
    return Outcome(REFUSED, text=message) if is_told or of_system else _finding(error)


def _finding(error):
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if re.search(r"/(keras_tupe|training)/", frame.filename)]
    frame = (ours or frames)[-1]
    place = "/".join(pathlib.Path(frame.filename).parts[-3:])
    text = f"{type(error).__name__}: {str(error)[:300]}"
    return Outcome(FINDING, f"{type(error).__name__} at {place}:{frame.lineno}", text)


def _damage(path, random):
    if not path.is_file():
        return  # damaged before
    content = path.read_bytes()
    change = _BY_SUFFIX.get(path.suffix, changed_bytes)
    kind = random.random()
    if kind < 0.02:
        path.unlink()
        return
    if kind < 0.03:
        path.unlink()
        path.mkdir()
        return
    if kind < 0.12:
        change = changed_bytes
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of names that are there twice, on purpose
            damaged = change(content, random)
    except Exception:  # damaged twice: it no longer has a structure
        damaged = changed_bytes(content, random)
    path.write_bytes(damaged)


def _files(folder):
    return [path for path in folder.rglob("*") if path.is_file()]


def _state(path):
    found = path.stat()
    return found.st_mtime_ns, found.st_size, found.st_ino
