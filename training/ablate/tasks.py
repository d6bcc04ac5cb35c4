"""The tasks of an ablation's runs: their commands, and the scores that these wrote."""

import contextlib
import dataclasses
import io
import pathlib
import shlex
import sys

from keras_tupe._json_file import read_json_object
from training.command.settings import parse
from training.evaluate_blimp import settings as blimp
from training.finetune_glue import settings as glue
from training.finetune_glue.protocol import PROTOCOLS
from training.finetune_squad import settings as squad

RESULTS = "results.json"
_SETTINGS = {"glue": glue.Settings, "squad": squad.Settings, "blimp": blimp.Settings}
_MOST = 1000.0  # percent; NaN is not below it
_NO_PRESET = "preset-that-is-not-there-yet"
_LONGEST = max(protocol.length for protocol in PROTOCOLS.values())


@dataclasses.dataclass(frozen=True)
class Task:
    """A command that scores the preset of a run.

    Attributes:
        name: name of its folder in that of the run.
        module: the command.
        options: its command line without preset and `--out`, a list of strings.
    """

    name: str
    module: str
    options: list

    def words(self, run, variant):
        """Returns the whole command line for a run.

        Args:
            run: the run's folder.
            variant: its `Variant`.
        """
        run = pathlib.Path(run)
        file = [] if variant.file is None else ["--position-file", variant.file]
        return [str(run / "preset"), *self.options, *file, "--out", str(run / self.name)]

    def problems(self):
        """Returns a sentence for each mistake in the options, found before there is a model."""
        own = [word for word in self.options if word.split("=")[0] in ("--out", "--position-file")]
        if own:
            return [
                f"{self.module}: {' and '.join(own)} cannot be among its options, since every run "
                "has its own. Received: " + shlex.join(self.options)
            ]
        settings = _SETTINGS[self.name]
        told = io.StringIO()
        with contextlib.redirect_stderr(told), contextlib.suppress(SystemExit):
            parse(settings, [_NO_PRESET, *self.options, "--out", _NO_PRESET])
        program = pathlib.Path(sys.argv[0]).name
        sentences = [
            line.removeprefix(f"{program}: ").removeprefix("error: ")
            for line in told.getvalue().splitlines()
            if line.startswith(f"{program}: ") and _NO_PRESET not in line
        ]
        return [f"{self.module}: {sentence}" for sentence in sentences]

    def is_done(self, run, variant):
        """Returns whether the results of exactly this command are there."""
        path = pathlib.Path(run) / self.name / RESULTS
        try:
            command = read_json_object(path)["command"]
        except (OSError, ValueError, KeyError):
            return False
        return command == shlex.join(["python", "-m", self.module, *self.words(run, variant)])


def tasks_of(settings, length=None):
    """Returns the `Task`s that a `Settings` of `training.ablate` asks for.

    Args:
        settings: the `Settings`.
        length: tokens of a row of pre-training, `None` if not known yet. GLUE gets no more than
            that of any method: those without a limit would else read longer texts than the others.
    """
    found = []
    if settings.tasks:
        options = ["--data", settings.glue, "--tasks", *settings.tasks]
        given = shlex.split(settings.glue_options)
        if length is not None and not any(map(_is_length, given)):
            options += ["--length", str(min(_LONGEST, length))]
        options += given
        found.append(Task("glue", "training.finetune_glue", options))
    if settings.squad_train:
        options = ["--train", settings.squad_train, "--dev", settings.squad_dev]
        options += shlex.split(settings.squad_options)
        found.append(Task("squad", "training.finetune_squad", options))
    if settings.blimp:
        options = ["--data", settings.blimp, *shlex.split(settings.blimp_options)]
        found.append(Task("blimp", "training.evaluate_blimp", options))
    return found


def _is_length(word):
    name = word.split("=")[0]
    return len(name) >= len("--len") and "--length".startswith(name)


def check_equal(out, tasks=()):
    """Checks that all runs of an ablation were tested by the same commands, on equal rows.

    Args:
        out: folder of the ablation.
        tasks: the `Task`s that are about to be done; those of the runs there must be equal.

    Raises:
        ValueError: naming two commands that differ in more than preset and folder, or what else
            differs: lengths of rows that the models brought, or how many pairs they could take.
    """
    known = {task.name: (shlex.join(task.options), "this command") for task in tasks}
    sizes = {}
    for path in sorted(pathlib.Path(out).glob(f"runs/*/seed-*/*/{RESULTS}")):
        try:
            results = read_json_object(path)
            options, size = _options(results["command"]), _size(results)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue  # `read_scores` says what is wrong
        where = path.parent.relative_to(out)
        before, place = known.setdefault(path.parent.name, (options, where))
        if options != before:
            raise ValueError(
                "The models of an ablation must be tested by one command, or their scores do not "
                "tell the methods apart. Give the same options, or move the folders of the others "
                f"away. Received: {place}: {before}; {where}: {options}"
            )
        before, place = sizes.setdefault(path.parent.name, (size, where))
        if size != before:
            raise ValueError(
                "The models of an ablation must be tested on equal rows: as long, and as many. "
                "Move these folders away and give options that all models can follow (--length "
                f"for GLUE, --paradigms for BLiMP). Received: {place}: {before}; {where}: {size}"
            )


def _size(results):
    """Returns a text: how long the rows were, and how many pairs, as far as results tell."""
    overall = results.get("overall") or {}
    found = {"tokens of a row": results.get("length"), "pairs": overall.get("pairs")}
    return ", ".join(f"{value} {name}" for name, value in found.items() if value is not None)


def _options(command):
    """Returns a task's command line without module, preset, folder and file of the method."""
    if not isinstance(command, str):  # shlex would take the rest of a stream
        raise TypeError(f"the command is a {type(command).__name__}")
    words = shlex.split(command)[4:]  # python -m MODULE PRESET
    kept, skips = [], False
    for word in words:
        if not skips and word not in ("--out", "--position-file"):
            kept.append(word)
        skips = word in ("--out", "--position-file")
    return shlex.join(kept)


def read_scores(run):
    """Returns what the tasks of a run scored.

    Args:
        run: folder of the run.

    Returns:
        Dictionary: name of a score -> percent; empty without tasks.
    """
    readers = {"glue": _glue, "squad": _squad, "blimp": _blimp}
    scores = {}
    for name, read in readers.items():
        path = pathlib.Path(run) / name / RESULTS
        if path.is_file():
            try:
                results = read_json_object(path)
                _options(results.get("command", ""))
                found = read(results)
                wrong = [score for score, value in found.items() if not _is_score(value)]
                if wrong:
                    raise ValueError(f"{wrong[0]} is {str(found[wrong[0]])[:100]}")
                scores |= found
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise ValueError(
                    f"The results of a task must be those that its command wrote: "
                    f"{type(error).__name__}: {error}. Received: {str(path)!r}"
                ) from None
    return scores


def _is_score(value):
    """Whether it is a number, or `None` for a model that has no score."""
    return value is None or (type(value) in (int, float) and abs(value) <= _MOST)


def _glue(results):
    columns = {
        f"GLUE {name}": column["score"]
        for task in results["tasks"].values()
        for name, column in task["columns"].items()
    }
    average = {"GLUE average": results["average"]} if len(columns) > 1 else {}
    return {**columns, **average}


def _squad(results):
    return {"SQuAD EM": results["exact_match"]["mean"], "SQuAD F1": results["f1"]["mean"]}


def _blimp(results):
    return {"BLiMP": 100 * results["overall"]["accuracy"]}
