"""Results of the finished runs of an ablation."""

import dataclasses
import functools
import pathlib

import numpy as np

from keras_tupe import objectives
from keras_tupe._json_file import read_json_object
from training.ablate.runs import check_belongs, find_runs, recorded_seconds
from training.ablate.scores import read_positions, read_scores, read_scores_at_steps
from training.ablate.tasks import check_equal
from training.pretrain.report import load_run
from training.study.results import shares_to_baseline, summarize

LOSS = "held-out loss"


@dataclasses.dataclass(frozen=True)
class Result:
    """What one finished run gave.

    Attributes:
        seed: its seed.
        steps, tokens: of each validation.
        losses: held-out losses at them, nats.
        accuracies: held-out accuracies, percent.
        scores: name -> number: `LOSS` and the objective's accuracy of the last validation, what
            else it reports of them, and the score of each task.
        tokens_per_second: median of its log; `None` if unknown.
        seconds: of training and of the tasks.
        command, commit: of the run.
        by_position: what `keras-tupe evaluate perplexity` found, a dictionary, or `None`.
        at_steps: dictionary: step of a preset on the way -> name -> score of a task.
    """

    seed: int
    steps: list
    tokens: list
    losses: list
    accuracies: list
    scores: dict
    tokens_per_second: float | None
    seconds: float
    command: str
    commit: str | None
    by_position: dict | None = None
    at_steps: dict = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Method:
    """A method and its finished runs.

    Attributes:
        name: as it is called in tables.
        folder: name of its folder.
        position, options: of the method.
        encoder_parameters: weights of the encoder, without the head.
        results: dictionary seed -> `Result`.
    """

    name: str
    folder: str
    position: str
    options: dict
    encoder_parameters: int
    results: dict

    def numbers(self, score):
        """Returns one score of each seed that has it, a dictionary."""
        found = {seed: result.scores.get(score) for seed, result in self.results.items()}
        return {seed: value for seed, value in found.items() if value is not None}


@dataclasses.dataclass(frozen=True)
class Ablation:
    """All finished runs of a folder.

    Attributes:
        baseline: name of the method that the others are compared with.
        methods: dictionary name -> `Method`.
        facts: what all runs have in common.
        unfinished: names of the runs that were begun and are not finished.
    """

    baseline: str
    methods: dict
    facts: dict
    unfinished: list

    @property
    def steps(self):
        """Optimizer steps of a run."""
        return self.facts["steps"]

    @property
    def seeds(self):
        """All seeds, ascending."""
        return sorted({seed for method in self.methods.values() for seed in method.results})

    @property
    def results(self):
        """The `Result`s of all methods."""
        return [one for method in self.methods.values() for one in method.results.values()]

    @property
    def score_names(self):
        """Names of all scores, loss and accuracy first."""
        return list(dict.fromkeys(name for result in self.results for name in result.scores))

    @property
    def objective(self):
        """The `Objective` of the runs, which has the words for what is measured."""
        return objectives.get(self.facts.get("objective", "masked_lm"))

    @property
    def accuracy_name(self):
        """Name of the score that is the share of right predictions."""
        return self.objective.accuracy

    @property
    def number_names(self):
        """Names of the scores that follow from the loss, such as perplexities."""
        known = self.objective.numbers(0.0, 1.0)
        return [name for name in self.score_names if name in known]

    @property
    def parts(self):
        """Names of the losses and accuracies of single outputs, where there are several.

        Returns:
            Dictionary: name -> unit. What is known as the accuracy already is left out.
        """
        found = {}
        for output in self.objective.outputs.values():
            found[loss_name(output)] = "nats"
            found[output.accuracy] = "percent"
        return {name: unit for name, unit in found.items() if name != self.accuracy_name}

    @property
    def task_names(self):
        """Names of the scores of tasks."""
        others = (LOSS, self.accuracy_name, *self.number_names, *self.parts)
        return [name for name in self.score_names if name not in others]

    @property
    def tested_steps(self):
        """Steps whose presets have scores, ascending, the last step too; none without others."""
        found = sorted({step for result in self.results for step in result.at_steps})
        return [*found, self.steps] if found else []

    def scores_of_steps(self, name, score):
        """Returns one score of one method over the steps.

        Args:
            name: the method.
            score: name of the score.

        Returns:
            Dictionary: seed -> step, ascending -> number; `None` where there is none.
        """
        return {
            seed: {
                step: result.scores.get(score)
                if step == self.steps
                else result.at_steps.get(step, {}).get(score)
                for step in self.tested_steps
            }
            for seed, result in self.methods[name].results.items()
        }

    @property
    def by_position(self):
        """Dictionary: method -> list of what its seeds have by position; only those that have."""
        found = {
            name: [one.by_position for one in method.results.values() if one.by_position]
            for name, method in self.methods.items()
        }
        return {name: results for name, results in found.items() if results}

    @functools.cached_property
    def summaries(self):
        """Dictionary: score -> method -> `Summary`."""
        return {
            score: summarize(
                {name: method.numbers(score) for name, method in self.methods.items()},
                self.baseline,
            )
            for score in self.score_names
        }

    @functools.cached_property
    def shares(self):
        """Dictionary: method -> `Shares`; methods without a seed of the baseline are left out."""
        curves = {
            name: {seed: (one.steps, one.losses) for seed, one in method.results.items()}
            for name, method in self.methods.items()
        }
        return shares_to_baseline(curves, self.baseline, self.steps)


def loss_name(output):
    """Returns what the loss of one of several outputs is called."""
    return f"{output.predictions} loss"


def collect(out, baseline):
    """Returns the `Ablation` in a folder.

    Args:
        out: the folder.
        baseline: name of a method, as in tables.

    Raises:
        ValueError: if there is no finished run, or the runs do not belong together.
    """
    found = find_runs(out)
    finished = [run for run in found if run.is_finished]
    if not finished:
        raise ValueError(
            "There must be a finished run at least, with its preset, for a report. "
            f"Received: {str(out)!r}, where {len(found)} runs were begun"
        )
    facts = finished[0].facts()
    check_belongs(out, finished, facts)
    check_equal(out)
    methods = {}
    for run in finished:
        name, folder = run.variant.label, run.folder.parent.name
        method = methods.setdefault(
            name, Method(name, folder, run.variant.position, run.variant.options, _size(run), {})
        )
        if method.folder != folder:
            raise ValueError(
                "A method must have one folder. Move one of them away. "
                f"Received: {method.folder!r} and {folder!r}, both of {name}"
            )
        method.results[run.seed] = _result(run)
    unfinished = [f"{run.variant.label}, seed {run.seed}" for run in found if not run.is_finished]
    return Ablation(baseline, methods, facts, unfinished)


def _size(run):
    """Returns the number of weights of a run's encoder, which its preset tells."""
    path = run.folder / "preset" / "metadata.json"
    try:
        count = read_json_object(path)["parameter_count"]
        if type(count) is not int:
            raise ValueError("it must be an integer")
        return count
    except (OSError, ValueError, KeyError):
        raise ValueError(
            f"A preset tells its number of weights in metadata.json. Received: {str(path)!r}"
        ) from None


def _result(run):
    logs = load_run(run.folder, run.variant.label)
    valid, steps = logs.valid, run.record["settings"]["steps"]
    if (
        not valid["step"]
        or valid["step"][-1] != steps
        or not np.isfinite(valid["valid_loss"]).all()
    ):
        raise ValueError(
            f"A finished run has a finite held-out loss at its last step, {steps}, in valid.csv. "
            f"Received: {str(pathlib.Path(run.folder))!r}"
        )
    accuracies = [100 * value for value in valid["valid_accuracy"]]
    scores = {LOSS: valid["valid_loss"][-1], **logs.numbers()}
    scores |= {words: 100 * valid[name][-1] for name, words in logs.accuracies.items()}
    for name, output in logs.words.outputs.items():
        scores[loss_name(output)] = valid[f"{name}_loss"][-1]
    return Result(
        run.seed,
        [int(step) for step in valid["step"]],
        [int(count) for count in valid["tokens"]],
        valid["valid_loss"],
        accuracies,
        {**scores, **read_scores(run.folder)},
        logs.typical("tokens_per_second"),
        sum(recorded_seconds(run.folder)),
        run.record.get("command"),
        run.record.get("commit"),
        read_positions(run.folder),
        read_scores_at_steps(run.folder),
    )
