"""The tasks of an ablation's runs: their settings, and where they write."""

import dataclasses
import pathlib
import shlex

from training.command.checks import option
from training.command.settings import read
from training.command.without_keras import without_keras
from training.command.words import option_words, words
from training.evaluate.tasks import blimp, perplexity
from training.finetune.glue.protocol import PROTOCOLS
from training.finetune.tasks import glue, squad
from training.presets.of_run import preset_at

with without_keras():
    from keras_tupe._json_file import read_json_object

RESULTS = "results.json"
STEPS = "tasks_at_steps"  # folder in that of a run
# Name of the folder in that of a run -> command, its first words, its settings.
_COMMANDS = {
    "glue": ("training.finetune", ("glue",), glue.Settings),
    "squad": ("training.finetune", ("squad",), squad.Settings),
    "blimp": ("training.evaluate", ("blimp",), blimp.Settings),
    "perplexity": ("training.evaluate", ("perplexity",), perplexity.Settings),
}
_NO_PRESET = "preset-that-is-not-there-yet"
_LONGEST = max(protocol.length for protocol in PROTOCOLS.values())


@dataclasses.dataclass(frozen=True)
class Task:
    """A command that scores the preset of a run.

    Attributes:
        name: name of its folder in that of the run.
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

    def words(self, run, variant, step=None):
        """Returns the whole command line.

        Args:
            run: folder of the run.
            variant: its `Variant`.
            step: that of the preset; `None` for the last one.
        """
        preset, out = str(preset_at(run, step)), str(self.folder(run, step))
        given = self.with_preset(preset).changed(out=out, position_file=variant.file).settings
        return [*_COMMANDS[self.name][1], *words(given)]

    def folder(self, run, step=None):
        """Returns the folder of its results.

        Args:
            run, step: as of `words`.
        """
        return scores_at(run, step) / self.name

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
        command = " ".join([self.module, *_COMMANDS[self.name][1]])
        return [f"{command}: {sentence}" for sentence in found]

    def is_done(self, run, step=None):
        """Returns whether the results of exactly this task are in the folder of a run.

        Args:
            run, step: as of `words`.
        """
        try:
            record = read_json_object(self.folder(run, step) / RESULTS)
            return asked(self.name, record["command"]) == self
        except (OSError, ValueError, KeyError, TypeError):
            return False


def scores_at(run, step=None):
    """Returns the folder where the results of tasks are, each in its own, a `pathlib.Path`.

    Args:
        run: folder of the run.
        step: steps after which the preset was written; `None` for the last one.
    """
    run = pathlib.Path(run)
    return run if step is None else run / STEPS / f"step-{step}"


def tasks_of(settings, length=None):
    """Returns the `Task`s that a `Settings` of `training.ablate` asks for.

    Args:
        settings: the `Settings`.
        length: tokens of a row of pre-training, `None` if not known yet. GLUE gets no more than
            that of any method: those without a limit would else read longer texts than the others.
    """
    given = {
        "glue": settings.tasks and {"data": settings.glue, "tasks": settings.tasks},
        "squad": settings.squad_train
        and {"train": settings.squad_train, "dev": settings.squad_dev},
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


def asked(name, command):
    """Returns the `Task` that a command line in results is of.

    Args:
        name: name of the task.
        command: the command line.

    Raises:
        TypeError, ValueError: if it is none.
    """
    if not isinstance(command, str):  # shlex would take the rest of a stream
        raise TypeError(f"the command is a {type(command).__name__}")
    first = 3 + len(_COMMANDS[name][1])
    return _task(name, shlex.split(command)[first:]).changed(out=None, position_file=None)


def _task(name, command_line):
    settings, mistakes = read(_COMMANDS[name][2], command_line)
    return Task(name, settings, tuple(mistakes)).with_preset(None)


def check_equal(out, tasks=(), pattern="runs"):
    """Checks that all runs of an ablation were tested with the same settings, on equal rows.

    Args:
        out: folder of the ablation.
        tasks: the `Task`s that are about to be done; those of the runs there must be equal.
        pattern: of the folders of runs in it.

    Raises:
        ValueError: naming two commands that differ in more than preset and folder, or what else
            differs: lengths of rows that the models brought, or how many pairs they could take.
    """
    known, sizes = {task.name: (task, "this command") for task in tasks}, {}
    runs, paths = f"{pattern}/*/seed-*", []
    for folder in (runs, f"{runs}/{STEPS}/*"):
        paths += sorted(pathlib.Path(out).glob(f"{folder}/*/{RESULTS}"))
    for path in paths:
        name, where = path.parent.name, path.parent.relative_to(out)
        try:
            results = read_json_object(path)
            task, size = asked(name, results["command"]), _size(results)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue  # `read_scores` says what is wrong
        before, other = known.setdefault(name, (task, where))
        if task != before:
            texts = [
                shlex.join(words(one.settings)) if one.settings else "; ".join(one.mistakes)
                for one in (before, task)
            ]
            raise ValueError(
                "The models of an ablation must be tested by one command, or their scores do not "
                "tell the methods apart. Give the same options, or move the folders of the others "
                f"away. Received: {other}: {texts[0]}; {where}: {texts[1]}"
            )
        before, other = sizes.setdefault(name, (size, where))
        if size != before:
            raise ValueError(
                "The models of an ablation must be tested on equal rows: as long, and as many. "
                "Move these folders away and give options that all models can follow (--length "
                f"for GLUE, --paradigms for BLiMP). Received: {other}: {before}; {where}: {size}"
            )


def _size(results):
    """Returns a text: how long the rows were, and how many pairs, as far as results tell."""
    overall = results.get("overall") or {}
    found = {"tokens of a row": results.get("length"), "pairs": overall.get("pairs")}
    return ", ".join(f"{value} {name}" for name, value in found.items() if value is not None)
