"""The plan of an experiment: its commands, what each costs, and all of it in words."""

import dataclasses
import json
import os
import shlex

from keras_tupe import positions
from training.command.report import table
from training.command.settings import option_words
from training.command.variant import parse
from training.finetune.cost import glue_cost, squad_cost
from training.machine.cost import CURVE_POINTS, H200, TWO_CORES, Cost, pretraining
from training.pretrain.settings import scaled_list, scaled_warmup
from training.studies.papers.definition import ROWS_AND_SEEDS
from training.studies.papers.facts import preset_facts, rows_facts

ABLATION, GRAFTED, SQUAD = "ablation", "grafted", "squad"  # folders in that of the experiment
PRESET = "preset"  # in place of a seed of pre-training


@dataclasses.dataclass(frozen=True)
class Command:
    """One command of a plan.

    Attributes:
        what: what it does, in a few words.
        module: such as `"training.study"`.
        words: list of the words behind it.
        parts: dictionary: name of a kind of work -> `Cost`.
        folder: of its run, in that of the experiment.
    """

    what: str
    module: str
    words: list
    parts: dict
    folder: str = ""

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
    if scale.squad is None or (scale.pretrain and len(scale.squad.lengths) == 1):
        return []
    lengths = scale.squad.lengths
    if scale.pretrain is None:  # the method that is replaced may know no longer rows
        before, after = scale.positions
        cells = [(before, lengths[0]), *((after, length) for length in lengths)]
        return [SquadCell(position, PRESET, length) for position, length in cells]
    return [
        SquadCell(position, f"seed-{seed}", length)
        for position in scale.positions
        for seed in range(scale.pretrain.seeds)
        for length in lengths
    ]


@dataclasses.dataclass(frozen=True)
class Plan:
    """What an experiment runs.

    Attributes:
        experiment: the `Experiment`.
        scale: the `Scale` that is run, with what the command line changed.
        facts: of the rows, see `rows_facts`; `None` if nothing is pre-trained.
        commands: list of `Command`, in their order.
    """

    experiment: object
    scale: object
    facts: dict | None
    commands: list

    def parts(self):
        """Returns a dictionary: kind of work -> `Cost`."""
        found = {}
        for command in self.commands:
            for name, cost in command.parts.items():
                found[name] = found.get(name, Cost()) + cost
        return found

    @property
    def cost(self):
        """The `Cost` of all."""
        return sum(self.parts().values(), Cost())


def make_plan(experiment, settings, device):
    """Returns the `Plan` of an experiment.

    Where data is not given, the plan is for what the scale assumes.

    Args:
        experiment: an `Experiment`.
        settings: a `Settings` of `training.studies.papers`, with a scale that the experiment has.
        device: the `Device` that the time is for.
    """
    scale = _changed(experiment.scales[settings.scale], settings)
    if scale.pretrain is None:
        facts, size = None, preset_facts(settings.preset, scale)[0]
    else:
        facts, size = rows_facts(settings.data, scale), scale.pretrain.size
    make = _Commands(scale, settings, size, device)
    first = make.graft() if facts is None else make.ablation(facts)
    return Plan(experiment, scale, facts, [first, *map(make.squad, squad_cells(scale))])


def _changed(scale, settings):
    """Returns a scale with what the command line changes; the warm-up remains the same share."""
    pretrain, glue = scale.pretrain, scale.glue
    if pretrain is not None and settings.seeds:
        pretrain = pretrain.changed(seeds=settings.seeds)
    if pretrain is not None and settings.steps:
        warmup = scaled_warmup(pretrain.warmup_steps, pretrain.steps, settings.steps)
        values = {"steps": settings.steps, "warmup_steps": warmup}
        if pretrain.preset_steps:
            share = settings.steps / pretrain.steps
            values["preset_steps"] = scaled_list(pretrain.preset_steps, share)
        pretrain = pretrain.changed(**values)
    if glue is not None and settings.tasks:
        glue = dataclasses.replace(glue, tasks=list(settings.tasks))
    return dataclasses.replace(scale, pretrain=pretrain, glue=glue)


class _Commands:
    """Makes the commands of a scale; what `settings` leave out they name in capitals."""

    def __init__(self, scale, settings, size, device):
        self._scale, self._settings, self._size, self._device = scale, settings, size, device
        self._out = settings.out or "OUT"
        self._machine = {"precision": settings.precision or scale.precision}
        self._machine |= {"strategy": settings.strategy, "xla": settings.xla}
        self._questions = {"train": settings.squad_train or "TRAIN"}
        self._questions["valid"] = settings.squad_dev or "DEV"

    def ablation(self, facts):
        """Returns the command that pre-trains, and tests what an ablation can test."""
        scale, given, pretrain = self._scale, self._settings, self._scale.pretrain
        points = pretrain.steps // CURVE_POINTS
        values = {"positions": scale.positions, "baseline": scale.baseline}
        values |= {"seeds": pretrain.seeds, "data": given.data or "ROWS"}
        values["out"] = os.path.join(self._out, ABLATION)
        values |= {name: pretrain.given[name] for name in ("config",) if name in pretrain.given}
        values |= {k: v for k, v in pretrain.given.items() if k not in ROWS_AND_SEEDS}
        values |= {"valid_every": max(1, points), "save_every": max(1, pretrain.steps // 10)}
        values |= {"log_every": max(1, min(50, points)), **self._machine}
        values |= {} if given.peak_flops is None else {"peak_flops": given.peak_flops}
        rows = (facts["length"], facts["vocabulary_size"])
        parts = {"pre-training": self._all(pretraining, pretrain, *rows)}
        if scale.glue is not None:
            options = _set(scale.glue)
            values |= {"tasks": options.pop("tasks"), "glue": given.glue or "GLUE"}
            values["glue_options"] = shlex.join(option_words({**options, **self._machine}))
            models = 1 + len(pretrain.preset_step_numbers())  # of each run
            parts["GLUE"] = self._all(glue_cost, scale.glue, self._size).times(models)
        if scale.squad is not None and not squad_cells(scale):
            (length,) = scale.squad.lengths
            values["squad_train"] = self._questions["train"]
            values["squad_dev"] = self._questions["valid"]
            values["squad_options"] = shlex.join(option_words(self._squad_options(length)))
            parts["SQuAD"] = self._all(squad_cost, scale.squad, length, self._size)
        if scale.long_rows is not None:
            values["long_rows"] = given.long_rows or "LONG_ROWS"
        what = f"{len(scale.positions)} methods, {pretrain.seeds} seeds each"
        return Command(what, "training.study", ["ablation", *option_words(values)], parts, ABLATION)

    def graft(self):
        """Returns the command that puts the other method into a preset."""
        variant, out = parse(self._scale.positions[1]), os.path.join(self._out, GRAFTED, "preset")
        values = {"graft": variant.position, "out": out}
        values |= {"graft_options": json.dumps(variant.options)} if variant.options else {}
        if positions.get(variant.position).has_length_limit(variant.resolved()):
            values["graft_length"] = max(self._scale.squad.lengths)
        words = [self._settings.preset or "PRESET", *option_words(values)]
        return Command("the other method is put in", "training.convert", words, {}, GRAFTED)

    def squad(self, cell):
        """Returns the command of a `SquadCell`."""
        values = {**self._questions, **self._squad_options(cell.length)}
        values["out"] = os.path.join(self._out, cell.folder)
        cost = squad_cost(self._scale.squad, cell.length, self._size, cell.position, self._device)
        what = f"SQuAD at {cell.length} tokens, {cell.position}, {cell.run}"
        words = [self._preset(cell), *option_words(values)]
        words = ["squad", *words]
        return Command(what, "training.finetune", words, {"SQuAD": cost}, cell.folder)

    def _preset(self, cell):
        if cell.run != PRESET:
            run = os.path.join(parse(cell.position).folder, cell.run, "pretrain")
            return os.path.join(self._out, ABLATION, run, "preset")
        if cell.position == self._scale.baseline:
            return self._settings.preset or "PRESET"
        return os.path.join(self._out, GRAFTED, "preset")

    def _squad_options(self, length):
        options = _set(self._scale.squad)
        del options["lengths"]
        return {**options, "length": length, **self._machine}

    def _all(self, cost, *arguments):
        """Returns the cost of all methods and seeds, of a function of the method and the device."""
        costs = (cost(*arguments, position, self._device) for position in self._scale.positions)
        return sum(costs, Cost()).times(self._scale.pretrain.seeds)


def _set(settings):
    return {name: value for name, value in vars(settings).items() if value is not None}


def nominal_device(scale):
    """Returns the `Device` that a scale is made for."""
    return TWO_CORES if scale == "laptop" else H200


def plan_text(plan, device):
    """Returns a plan in words and tables.

    Args:
        plan: a `Plan`.
        device: the `Device` that it was made for.
    """
    experiment, scale = plan.experiment, plan.scale
    rows = [[name, *_cells(cost)] for name, cost in plan.parts().items()]
    if len(rows) > 1:
        rows.append(["all", *_cells(plan.cost)])
    basis = (
        f"Hours: on {device.name}, at {device.utilisation:.0%} of {device.peak_flops / 1e12:.3g} "
        f"TFLOP/s, at least {1000 * device.step_seconds:g} ms a step, and "
        f"{device.start_seconds:.0f} s to start a run of fine-tuning, twice that for pre-training; "
        "an estimate. FLOPs: of the model, evaluation included."
    )
    parts = [
        f"{experiment.name}, scale {scale.name}: {experiment.question}",
        table(["work", "runs", "tokens", "FLOPs", "hours"], rows),
        basis,
    ]
    if plan.facts is not None and plan.facts["rows"]:
        seen = scale.pretrain.steps * scale.pretrain.batch_size
        parts.append(
            f"Each pre-training sees the {plan.facts['rows']:,} rows "
            f"{seen / plan.facts['rows']:.3g} times."
        )
    parts.append("\n".join(f"{number}. {one}" for number, one in enumerate(plan.commands, 1)))
    return "\n\n".join(parts)


def _cells(cost):
    return [f"{cost.runs:,}", f"{cost.tokens:.3g}", f"{cost.flops:.3g}", hours_text(cost)]


def hours_text(cost):
    """Returns the hours of a `Cost`, in two digits where they are few."""
    hours = cost.seconds / 3600
    return f"{hours:,.0f}" if hours >= 10 else f"{hours:.2g}"
