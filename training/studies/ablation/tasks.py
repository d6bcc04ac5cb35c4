"""The tasks of an ablation's models: a command for each, what tells it from others, its scores."""

import dataclasses
import hashlib
import json
import os
import pathlib
import shlex

from training.command.settings import option, option_words, read, words
from training.command.without_keras import without_keras
from training.evaluate.tasks import blimp, perplexity
from training.finetune.glue.protocol import GLUE_TASKS, PROTOCOLS
from training.finetune.tasks import glue, squad

with without_keras():
    from keras_tupe._json_file import read_json_object

RESULTS = "study.json"
_NO_PRESET = "preset-that-is-not-there-yet"
_LONGEST = max(protocol.length for protocol in PROTOCOLS.values())
_MOST = 1000.0  # percent; NaN is not below it
# Of a model, a folder or the machine: no number depends on them. Data counts by its content.
_NO_MATTER = {"preset", "presets", "out", "position_file", "data", "train", "valid"}
_NO_MATTER |= {"strategy", "xla", "remat", "deterministic"}


def _glue_scores(results):
    columns = {
        f"GLUE {name}": column["score"]
        for task in results["tasks"].values()
        for name, column in task["columns"].items()
    }
    average = {"GLUE average": results["average"]} if len(columns) > 1 else {}
    return {**columns, **average}


def _squad_scores(results):
    return {"SQuAD EM": results["exact_match"]["mean"], "SQuAD F1": results["f1"]["mean"]}


def _blimp_scores(results):
    return {"BLiMP": 100 * results["overall"]["accuracy"]}


def _glue_files(settings):
    if settings.data == "tfds":
        return []
    folders = [pathlib.Path(settings.data, GLUE_TASKS[name].folder) for name in settings.tasks]
    return [folder for folder in folders if folder.is_dir()] or [settings.data]


# Name -> command, its settings, their paths of data, scores in its results (`None`: others).
_COMMANDS = {
    "glue": ("training.finetune", glue.Settings, _glue_files, _glue_scores),
    "squad": (
        *("training.finetune", squad.Settings),
        *(lambda settings: [settings.train, settings.valid], _squad_scores),
    ),
    "blimp": (
        *("training.evaluate", blimp.Settings),
        *(lambda settings: [settings.data], _blimp_scores),
    ),
    "perplexity": (
        *("training.evaluate", perplexity.Settings),
        *(lambda settings: [settings.data], None),
    ),
}

TASKS = tuple(_COMMANDS)  # in the order of tables


@dataclasses.dataclass(frozen=True)
class Task:
    """A command that scores the preset of a run.

    Attributes:
        name: of the task, and of its folder.
        settings: a `Settings` of the command, but for what is a run's own; `None` if the words
            that were given for it cannot be read.
        mistakes: sentences on these words.
    """

    name: str
    settings: object
    mistakes: tuple = ()

    @property
    def module(self):
        """The command."""
        return _COMMANDS[self.name][0]

    def words(self, preset, out, variant):
        """Returns the command line for a preset."""
        own = {"out": str(out), "position_file": variant.file}
        return [self.name, *words(self.with_preset(str(preset)).changed(**own).settings)]

    def with_preset(self, preset):
        """Returns the task of a preset, or of none."""
        if hasattr(self.settings, "presets"):
            return self.changed(presets=(preset,) if preset else ())
        return self.changed(preset=preset)

    def changed(self, **values):
        """Returns the task with other settings."""
        if self.settings is None:
            return self
        return dataclasses.replace(self, settings=dataclasses.replace(self.settings, **values))

    def problems(self):
        """Returns a sentence for each mistake in the settings, found before there is a model."""
        found = list(self.mistakes)
        if self.settings is not None:
            found += [
                f"{option(name)} cannot be among its options, since every run has its own. "
                f"Received: {getattr(self.settings, name)!r}"
                for name in ("out", "position_file")
                if getattr(self.settings, name) is not None
            ]
            told = self.with_preset(_NO_PRESET).changed(out=_NO_PRESET).settings.problems()
            found += [sentence for sentence in told if _NO_PRESET not in sentence]
        return [f"{self.module} {self.name}: {sentence}" for sentence in found]

    def identity(self):
        """Returns what its scores depend on besides the model: values, a protocol's, hashes."""
        _, kind, files, _ = _COMMANDS[self.name]
        fields = [field.name for field in dataclasses.fields(kind) if "help" in field.metadata]
        found = {name: getattr(self.settings, name) for name in fields if name not in _NO_MATTER}
        if self.name == "glue":
            found["protocol"] = vars(PROTOCOLS[self.settings.protocol])
        found["data"] = [content_hash(path) for path in files(self.settings)]
        return json.loads(json.dumps(found, default=_plain))

    def read(self, folder):
        """Returns what it found, a dictionary: `scores`, and what must be equal for all models.

        Args:
            folder: where its command wrote.

        Raises:
            ValueError: if its results are not what it wrote.
        """
        path, scores_of = pathlib.Path(folder) / RESULTS, _COMMANDS[self.name][3]
        try:
            results = read_json_object(path)
            found = {"size": _size(results)}
            if results.get("diverged") and not results.get("rows"):
                return {**found, "scores": []}
            if "seconds" in results:
                found["seconds"] = float(results["seconds"])
            if scores_of is None:
                names = ("positions", "trained_length", "numbers", "bins")
                return {**found, "by_position": {name: results[name] for name in names}}
            scores = scores_of(results)
            wrong = [score for score, value in scores.items() if not _is_score(value)]
            if wrong:
                raise ValueError(f"{wrong[0]} is {str(scores[wrong[0]])[:100]}")
            rows = [{"score": score, "value": value} for score, value in scores.items()]
            return {**found, "scores": rows}
        except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
            raise ValueError(
                f"The results of a task must be those that its command wrote: "
                f"{type(error).__name__}: {error}. Received: {str(path)!r}"
            ) from None


def _plain(value):
    return vars(value) if hasattr(value, "__dict__") else str(value)


def _is_score(value):
    """Whether it is a number, or `None` for a model that has no score."""
    return value is None or (type(value) in (int, float) and abs(value) <= _MOST)


def _size(results):
    """Returns a text: how long the rows were, and how many pairs, as far as results tell."""
    overall = results.get("overall") or {}
    found = {"tokens of a row": results.get("length"), "pairs": overall.get("pairs")}
    return ", ".join(f"{value} {name}" for name, value in found.items() if value is not None)


def content_hash(path):
    """Returns a hash of a file, or of all files in a folder with their names."""
    path, found = pathlib.Path(path), hashlib.sha256()
    files = [path] if path.is_file() else sorted(one for one in path.rglob("*") if one.is_file())
    for file in files:
        found.update(os.fsencode("" if file == path else file.relative_to(path)))
        with file.open("rb") as stream:
            found.update(hashlib.file_digest(stream, "sha256").digest())
    return found.hexdigest()[:16]


def tasks_of(settings, length=None):
    """Returns the `Task`s that a `Settings` of an ablation asks for.

    Args:
        settings: the `Settings`.
        length: tokens of a row of pre-training, `None` if not known yet. GLUE gets no more than
            that of any method: those without a limit would else read longer texts than the others.
    """
    given = {
        "glue": settings.tasks and {"data": settings.glue, "tasks": settings.tasks},
        "squad": settings.squad_train
        and {"train": settings.squad_train, "valid": settings.squad_dev},
        "blimp": settings.blimp and {"data": settings.blimp},
        "perplexity": settings.long_rows and {"data": settings.long_rows},
    }
    found = []
    for name, values in given.items():
        if values:
            options = shlex.split(getattr(settings, f"{name}_options"))
            task = _task(name, [_NO_PRESET, *option_words(values), *options])
            if name == "glue" and length is not None and task.settings.length is None:
                task = task.changed(length=min(_LONGEST, length))
            found.append(task)
    return found


def _task(name, command_line):
    settings, mistakes = read(_COMMANDS[name][1], command_line)
    return Task(name, settings, tuple(mistakes)).with_preset(None)
