"""The runs of an experiment, what they cost on a device, and what is compared."""

import dataclasses
import json
import pathlib
import shlex

from keras_tupe import data, positions
from training.command.settings import option_words, read
from training.command.variant import parse
from training.finetune.cost import glue_cost, squad_cost
from training.finetune.tasks.squad import Settings as SquadSettings
from training.machine.cost import CURVE_POINTS, H200, TWO_CORES, Cost, find_device, pretraining
from training.presets.folder import preset_digest
from training.pretrain.settings import scaled_list, scaled_warmup
from training.studies.ablation.runs import Ablating, command, test_run
from training.studies.ablation.settings import Settings as AblationSettings
from training.studies.ablation.tasks import Task
from training.studies.papers import report
from training.studies.papers.definition import ROWS_AND_SEEDS, find
from training.studies.papers.settings import missing, preset_facts
from training.study.report import cost_words
from training.study.study import Run, RunError, Work

GRAFTED = "grafted"


@dataclasses.dataclass(frozen=True)
class Plan:
    """What an experiment runs, and what that costs.

    Attributes:
        experiment: the `Experiment`.
        scale: the `Scale` that is run, with what the command line changed.
        device: the `Device` that the time is for.
        rows: number of rows of pre-training; `None` if it is not known.
        parts: dictionary: kind of work -> `Cost`.
    """

    experiment: object
    scale: object
    device: object
    rows: int | None
    parts: dict

    @property
    def cost(self):
        """The `Cost` of all."""
        return sum(self.parts.values(), Cost())

    def __str__(self):
        """The plan in words and a table."""
        told = f"{self.experiment.name}, scale {self.scale.name}: {self.experiment.question}"
        parts = [told, cost_words(self.parts, self.device)]
        if self.rows:
            seen = self.scale.pretrain.steps * self.scale.pretrain.batch_size / self.rows
            parts.append(f"Each pre-training sees the {self.rows:,} rows {seen:.3g} times.")
        return "\n\n".join(parts)


def nominal_device(scale):
    """Returns the `Device` that a scale is made for."""
    return TWO_CORES if scale == "laptop" else H200


def make_plan(experiment, settings, device):
    """Returns the `Plan` of an experiment; where data is not given, for what the scale assumes."""
    scale = changed(experiment.scales[settings.scale], settings)
    pretrain, glue, squad, count, parts = scale.pretrain, scale.glue, scale.squad, None, {}
    if pretrain is None:
        before, after = scale.positions
        size, seeds = preset_facts(settings.preset, scale)[0], 1
        cells = [(before, squad.lengths[0]), *((after, length) for length in squad.lengths)]
    else:
        size, seeds, vocabulary_size = pretrain.size, pretrain.seeds, pretrain.vocabulary_size
        if settings.data is not None:
            rows = data.PreparedRows(settings.data)
            vocabulary_size, count = rows.vocabulary.size, len(rows)
        costs = (
            pretraining(pretrain, pretrain.length, vocabulary_size, position, device)
            for position in scale.positions
        )
        parts["pre-training"] = sum(costs, Cost()).times(seeds)
        lengths = squad.lengths if squad else []
        cells = [(one, length) for one in scale.positions for length in lengths]
    if glue is not None:
        models = seeds * (1 + len(pretrain.preset_step_numbers()))
        costs = (glue_cost(glue, size, position, device) for position in scale.positions)
        parts["GLUE"] = sum(costs, Cost()).times(models)
    if squad is not None:
        costs = (squad_cost(squad, length, size, one, device) for one, length in cells)
        parts["SQuAD"] = sum(costs, Cost()).times(seeds)
    return Plan(experiment, scale, device, count, parts)


def changed(scale, settings):
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


def ablation_words(scale, settings):
    """Returns the options of the ablation that pre-trains the models of a scale, and tests them."""
    pretrain, machine = scale.pretrain, machine_of(scale, settings)
    points = pretrain.steps // CURVE_POINTS
    values = {"positions": scale.positions, "baseline": scale.positions[0]}
    values |= {"seeds": pretrain.seeds, "data": settings.data, "out": settings.out}
    values |= {name: pretrain.given[name] for name in ("config",) if name in pretrain.given}
    values |= {k: v for k, v in pretrain.given.items() if k not in ROWS_AND_SEEDS}
    values |= {"valid_every": max(1, points), "save_every": max(1, pretrain.steps // 10)}
    values |= {"log_every": max(1, min(50, points)), **machine, "long_rows": settings.long_rows}
    values |= {"peak_flops": settings.peak_flops}
    if scale.glue is not None:
        options = _set(vars(scale.glue))
        values |= {"tasks": options.pop("tasks"), "glue": settings.glue}
        values["glue_options"] = shlex.join(option_words({**options, **machine}))
    return option_words(_set(values))


def machine_of(scale, settings):
    """Returns the settings of how all commands of an experiment work, a dictionary."""
    precision = settings.precision or scale.precision
    return {"precision": precision, "strategy": settings.strategy, "xla": settings.xla}


def _set(values):
    return {name: value for name, value in values.items() if value is not None}


def squad_tasks(scale, settings):
    """Returns the `Task`s of SQuAD of a scale, one for each length."""
    if scale.squad is None:
        return []
    values = {**_set(vars(scale.squad)), **machine_of(scale, settings)}
    lengths = values.pop("lengths")
    values |= {"train": settings.squad_train, "valid": settings.squad_dev}
    return [
        Task(
            "squad",
            SquadSettings(**values, length=length),
            folder="squad" if is_one_length(scale) else f"squad-{length}",
            place={} if is_one_length(scale) else {"method": report.METHOD_AT.format(length)},
            each_seed=scale.pretrain is None,
        )
        for length in lengths
    ]


def is_one_length(scale):
    """Whether models are asked at one length, so that methods are what is compared."""
    return scale.pretrain is not None and (scale.squad is None or len(scale.squad.lengths) == 1)


class Papers(Work):
    """An experiment; see `Work`."""

    tells_early = True

    def __init__(self, settings):
        super().__init__(settings)
        self._definition = find(settings.name)
        self._plan = make_plan(self._definition, settings, nominal_device(settings.scale))
        self.variety = f" {self._definition.name} {settings.scale}"

    def plan(self, results):
        """Yields the runs of an ablation, or a graft and its fine-tunings; none without data."""
        settings, scale = self.settings, self._plan.scale
        if missing(settings, self._definition.name, scale):
            return
        tasks = squad_tasks(scale, settings)
        if scale.pretrain is None:
            yield from self._graft(tasks)
            return
        of_ablation, wrong = read(AblationSettings, ablation_words(scale, settings))
        if wrong:
            raise ValueError("\n".join(wrong))
        yield from Ablating(of_ablation, tasks).plan(results)

    def _graft(self, tasks):
        preset = self.settings.preset
        before, after = map(parse, self._plan.scale.positions)
        digest = {"preset": preset_digest(preset)}
        values = {"graft": after.position}
        values |= {"graft_options": json.dumps(after.options)} if after.options else {}
        if positions.get(after.position).has_length_limit(after.resolved()):
            values["graft_length"] = max(self._plan.scale.squad.lengths)

        def do(out):
            words = [preset, *option_words({**values, "out": str(out / "preset")})]
            if command("training.convert", words) != 0:
                raise RunError(f"Received: {shlex.join(words)}")
            return {}

        graft = Run(GRAFTED, do, {}, {**values, **digest}, kind=GRAFTED)
        yield graft
        grafted = pathlib.Path(self.settings.out or "", GRAFTED, "preset")
        cells = [(before, preset, None, tasks[:1]), (after, grafted, graft, tasks)]
        for variant, model, comes_after, of in cells:
            for task in of:
                known = (task, variant, model, task.placed(variant), task.identity(), comes_after)
                yield dataclasses.replace(test_run(variant.folder, *known), own=digest)

    def estimate(self, runs, todo, results):
        """Returns the plan: what it costs on the device that is found."""
        settings, scale = self.settings, self._plan.scale
        device, _ = find_device(
            settings.precision or scale.precision, settings.peak_flops, settings.utilisation
        )
        return str(make_plan(self._definition, settings, device))

    def report(self, results):
        """Returns the paper's numbers and ours."""
        return report.report(self._plan, results, self.settings.overrides())
