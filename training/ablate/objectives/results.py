"""Scores of the ablations of several objectives, compared with those of the first."""

import dataclasses
import functools
import pathlib

import numpy as np

from keras_tupe import objectives
from keras_tupe._json_file import read_json_object
from training.ablate.results import collect
from training.ablate.runs import find_runs, recorded_seconds
from training.ablate.tasks import check_equal
from training.pretrain.settings import Settings
from training.study.results import holm, summarize


@dataclasses.dataclass(frozen=True)
class RunCost:
    """What a run of pre-training of one objective costs.

    Attributes:
        steps: of its optimizer.
        tokens: that it is trained on.
        step_flops: operations of a step, see the `Objective`.
        seconds: of training, the mean of the finished runs; `None` if none is.
    """

    steps: int
    tokens: int
    step_flops: float
    seconds: float | None = None

    @property
    def flops(self):
        """Operations of the run."""
        return self.steps * self.step_flops

    def is_like(self, other):
        """Whether no number of steps makes the run cost more nearly what another one does."""
        steps = max(other.flops / self.step_flops, 1)
        return abs(self.steps - steps) <= 0.5 + 1e-6


@dataclasses.dataclass(frozen=True)
class Comparison:
    """The ablations of several objectives.

    Attributes:
        objectives: names of all, that which the others are compared with first.
        ablations: dictionary: name of an objective -> `Ablation`; those with a finished run.
        costs: dictionary: name -> `RunCost`.
        unfinished: names of the runs that were begun and are not finished, and of the objectives
            that have no finished run.
    """

    objectives: list
    ablations: dict
    costs: dict
    unfinished: list

    @property
    def baseline(self):
        """Name of the objective that the others are compared with."""
        return self.objectives[0]

    @property
    def is_equal(self):
        """Whether the runs of all objectives cost the same, to the nearest step."""
        first, *others = self.costs.values()
        return all(cost.is_like(first) for cost in others)

    @property
    def title(self):
        """Title of the report, which promises equal FLOPs only where there are."""
        return f"Objectives compared at {'equal' if self.is_equal else 'unequal'} FLOPs"

    @property
    def results(self):
        """The `Result`s of all runs."""
        return [result for one in self.ablations.values() for result in one.results]

    @property
    def methods(self):
        """Names of the positional methods that any objective has a finished run of."""
        return list(dict.fromkeys(name for one in self.ablations.values() for name in one.methods))

    @property
    def seeds(self):
        """All seeds, ascending."""
        return sorted({seed for one in self.ablations.values() for seed in one.seeds})

    @property
    def scores(self):
        """Names of the scores of tasks that all objectives have; losses are none of them."""
        first, *others = [one.task_names for one in self.ablations.values()]
        return [name for name in first if all(name in names for names in others)]

    @functools.cached_property
    def summaries(self):
        """Dictionary: score -> method -> objective -> `Summary`.

        Differences are of equal seeds, to the first objective; Holm's correction is over all
        comparisons of a score.
        """
        return {score: self._summaries(score) for score in self.scores}

    def _summaries(self, score):
        found = {}
        for method in self.methods:
            numbers = {
                name: one.methods[method].numbers(score) if method in one.methods else {}
                for name, one in self.ablations.items()
            }
            found[method] = summarize(numbers, self.baseline)
        compared = [
            (method, name)
            for method, summaries in found.items()
            for name, summary in summaries.items()
            if summary.difference is not None
        ]
        p_values = holm([found[method][name].p_value for method, name in compared])
        for (method, name), p_value in zip(compared, p_values, strict=True):
            summary = found[method][name]
            found[method][name] = dataclasses.replace(summary, adjusted_p=p_value)
        return found


def collect_all(out, names, baseline):
    """Returns the `Comparison` of the objectives in a folder.

    Args:
        out: the folder.
        names: of the objectives, that to compare with first.
        baseline: name of the positional method that each ablation compares with.

    Raises:
        ValueError: if there is no finished run, or they do not belong together.
    """
    ablations, costs, unfinished = {}, {}, []
    for name in names:
        folder = pathlib.Path(out) / name
        runs = [run for run in find_runs(folder) if run.is_finished]
        if not runs:
            unfinished.append(f"all of {name}")
            continue
        ablations[name] = _checked(collect(folder, baseline), name, folder)
        unfinished += [f"{name}, {run}" for run in ablations[name].unfinished]
        costs[name] = _cost(runs)
    if not ablations:
        raise ValueError(
            "There must be a finished run at least, with its preset, for a report. "
            f"Received: {str(out)!r}, with objectives {list(names)}"
        )
    check_equal(out, pattern="*/runs")
    return Comparison(list(names), ablations, costs, unfinished)


def _checked(ablation, name, folder):
    if ablation.objective is not objectives.get(name):
        raise ValueError(
            "The ablation of an objective must be in the folder of its name. Move it away. "
            f"Received: {str(folder)!r}, of {ablation.facts.get('objective')!r}"
        )
    return ablation


def _cost(runs):
    """Returns the `RunCost` of finished runs of one objective."""
    record, preset = runs[0].record, runs[0].folder / "preset" / "config.json"
    settings, length = Settings(**record["settings"]), record["data"]["length"]
    try:
        sizes = read_json_object(preset)["config"]
        flops = settings.objective_record().step_flops(
            sizes, settings.batch_size, length, settings.objective_options()
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"A preset tells the sizes of its encoder in config.json ({type(error).__name__}: "
            f"{error}). Received: {str(preset)!r}"
        ) from None
    seconds = [recorded_seconds(run.folder)[0] for run in runs]
    tokens = settings.steps * settings.batch_size * length
    return RunCost(settings.steps, tokens, flops, float(np.mean(seconds)))
