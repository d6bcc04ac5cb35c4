"""The command lines of an experiment, and what each costs."""

import dataclasses
import json
import os
import shlex

from keras_tupe import positions
from training.machine import cost as machine_cost
from training.machine.cost import CURVE_POINTS, Cost
from training.presets.variant import parse

ABLATION, GRAFTED, SQUAD = "ablation", "grafted", "squad"  # folders in that of the experiment
PRESET = "preset"  # in place of a seed of pre-training
_OWN = ("seeds", "length", "vocabulary_size", "config")  # of a scale, not of training.pretrain


@dataclasses.dataclass(frozen=True)
class Command:
    """One command of a plan.

    Attributes:
        what: what it does, in a few words.
        module: such as `"training.ablate"`.
        words: list of the words behind it.
        parts: dictionary: name of a kind of work -> `Cost`.
        makes: path that is there when it is done, for a command that cannot be repeated, or `""`.
    """

    what: str
    module: str
    words: list
    parts: dict
    makes: str = ""

    def __str__(self):
        return shlex.join(["python", "-m", self.module, *self.words])


@dataclasses.dataclass(frozen=True)
class SquadCell:
    """A fine-tuning on SQuAD that is a command of its own.

    Attributes:
        position: positional method, as on a command line.
        run: `"seed-0"` and so on of pre-training, or `PRESET`.
        length: tokens per window.
    """

    position: str
    run: str
    length: int

    @property
    def folder(self):
        """Its folder, relative to that of the experiment."""
        return os.path.join(SQUAD, parse(self.position).folder, self.run, f"length-{self.length}")


def squad_cells(scale):
    """Returns the `SquadCell`s of a `Scale`: none where an ablation does it, at its one length."""
    if scale.squad is None or (scale.pretrain and len(scale.squad["lengths"]) == 1):
        return []
    lengths = scale.squad["lengths"]
    if scale.pretrain is None:  # the method that is replaced may know no longer rows
        before, after = scale.positions
        cells = [(before, lengths[0]), *((after, length) for length in lengths)]
        return [SquadCell(position, PRESET, length) for position, length in cells]
    return [
        SquadCell(position, f"seed-{seed}", length)
        for position in scale.positions
        for seed in range(scale.pretrain["seeds"])
        for length in lengths
    ]


class Commands:
    """Makes the commands of an experiment.

    Args:
        scale: the `Scale`.
        settings: a `Settings` of `training.experiment`; of what it leaves out, commands name the
            option, in capitals.
        precision: of the work.
        size: name of the encoder's size, or a dictionary of its sizes.
        device: the `Device` that the time is for.
    """

    def __init__(self, scale, settings, precision, size, device):
        self._scale, self._settings, self._size, self._device = scale, settings, size, device
        self._out = settings.out or "OUT"
        self._machine = ["--precision", precision, "--strategy", settings.strategy]
        self._machine += ["--xla", settings.xla]
        self._squad = ["--train", settings.squad_train or "TRAIN"]
        self._squad += ["--dev", settings.squad_dev or "DEV"]

    def ablation(self, facts):
        """Returns the command that pre-trains, and tests what an ablation can test.

        Args:
            facts: of the rows, see `rows_facts`.
        """
        scale, settings, seeds = self._scale, self._settings, self._scale.pretrain["seeds"]
        values = scale.pretraining()
        words = ["--positions", *scale.positions, "--baseline", scale.baseline]
        words += ["--seeds", str(seeds), "--data", settings.data or "ROWS"]
        words += ["--out", os.path.join(self._out, ABLATION)]
        if "config" in scale.pretrain:
            words += ["--config", scale.pretrain["config"]]
        own = {name: value for name, value in scale.pretrain.items() if name not in _OWN}
        own |= {
            "valid_every": max(1, values["steps"] // CURVE_POINTS),
            "save_every": max(1, values["steps"] // 10),
            "log_every": max(1, min(50, values["steps"] // CURVE_POINTS)),
        }
        words += option_words(own) + self._machine
        if settings.peak_flops is not None:
            words += ["--peak-flops", str(settings.peak_flops)]
        sizes = (facts["length"], facts["vocabulary_size"])
        parts = {
            "pre-training": self._all(
                lambda position: machine_cost.pretraining(values, *sizes, position, self._device)
            )
        }
        if scale.glue is not None:
            options = dict(scale.glue)
            words += ["--tasks", *options.pop("tasks"), "--glue", settings.glue or "GLUE"]
            words += ["--glue-options", shlex.join(option_words(options) + self._machine)]
            parts["GLUE"] = self._all(
                lambda position: machine_cost.glue(scale.glue, self._size, position, self._device)
            )
        if scale.squad is not None and not squad_cells(scale):
            words += [f"--squad-{word[2:]}" if "--" in word else word for word in self._squad]
            length = scale.squad["lengths"][0]
            words += ["--squad-options", shlex.join(self._squad_words(length))]
            parts["SQuAD"] = self._all(lambda position: self._squad_cost(length, position))
        what = f"{len(scale.positions)} methods, {seeds} seeds each"
        return Command(what, "training.ablate", words, parts)

    def graft(self):
        """Returns the command that puts the other method into a preset."""
        variant, out = parse(self._scale.positions[1]), os.path.join(self._out, GRAFTED)
        words = [self._settings.preset or "PRESET", "--graft", variant.position, "--out", out]
        words += ["--graft-options", json.dumps(variant.options)] if variant.options else []
        if positions.get(variant.position).has_length_limit(variant.resolved()):
            words += ["--graft-length", str(max(self._scale.squad["lengths"]))]
        return Command("the other method is put in", "training.convert", words, {}, out)

    def squad(self, cell):
        """Returns the command of a `SquadCell`."""
        words = [self._preset(cell), *self._squad, *self._squad_words(cell.length)]
        words += ["--out", os.path.join(self._out, cell.folder)]
        what = f"SQuAD at {cell.length} tokens, {cell.position}, {cell.run}"
        cost = self._squad_cost(cell.length, cell.position)
        return Command(what, "training.finetune_squad", words, {"SQuAD": cost})

    def _preset(self, cell):
        if cell.run != PRESET:
            run = os.path.join("runs", parse(cell.position).folder, cell.run)
            return os.path.join(self._out, ABLATION, run, "preset")
        if cell.position == self._scale.baseline:
            return self._settings.preset or "PRESET"
        return os.path.join(self._out, GRAFTED)

    def _squad_words(self, length):
        options = {**self._scale.squad, "length": length}
        del options["lengths"]
        return option_words(options) + self._machine

    def _squad_cost(self, length, position):
        settings = self._scale.squad
        return machine_cost.squad(settings, length, self._size, position, self._device)

    def _all(self, cost):
        """Returns the cost of all methods and seeds, of a function of the method."""
        costs = (cost(position) for position in self._scale.positions)
        return sum(costs, Cost()).times(self._scale.pretrain["seeds"])


def option_words(values):
    """Returns options of a command line, a list of words; what is `None` is left out.

    Example:
        >>> option_words({"max_steps": 3, "fast": False, "rates": [1, 2], "none": None})
        ['--max-steps', '3', '--no-fast', '--rates', '1', '2']
    """
    words = []
    for name, value in values.items():
        option = name.replace("_", "-")
        if isinstance(value, bool):
            words.append(f"--{option}" if value else f"--no-{option}")
        elif value is not None:
            words += [f"--{option}", *map(str, value if isinstance(value, list) else [value])]
    return words
