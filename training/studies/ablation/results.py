"""Results of the finished runs of an ablation, by method and seed."""

import dataclasses
import functools

from keras_tupe import objectives
from training.studies.ablation.tasks import TASKS
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
        seconds: of training.
        commit: of the run.
        by_position: what `keras-tupe evaluate perplexity` found, a dictionary; empty if not asked.
        test_seconds: of the tasks.
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
    commit: str | None
    by_position: dict = dataclasses.field(default_factory=dict)
    test_seconds: list = dataclasses.field(default_factory=list)
    at_steps: dict = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Method:
    """A method and its finished runs.

    Attributes:
        name: as it is called in tables.
        position, options: of the method.
        encoder_parameters: weights of the encoder, without the head.
        results: dictionary seed -> `Result`.
    """

    name: str
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
    """

    baseline: str
    methods: dict
    facts: dict

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


def collect(results, baseline, **place):
    """Returns the `Ablation` of finished runs.

    Args:
        results: `Results` of the study.
        baseline: name of a method, as in tables.
        **place: what the runs have in common, such as the objective.

    Raises:
        ValueError: if there is no finished run, or models were tested on unequal rows.
    """
    runs = results.of(**place)
    trained = [run for run in runs if run.kind.startswith("pretrain")]
    if not trained:
        raise ValueError("There must be a finished run at least, with its preset, for a report.")
    _check_sizes(runs)
    methods = {}
    for run in trained:
        name, own, found = run.place["position"], run.own, run.found
        method = methods.setdefault(
            name,
            Method(
                *(name, own["position"], own["position_options"]),
                *(found["encoder_parameters"], {}),
            ),
        )
        names = ("steps", "tokens", "losses", "accuracies", "tokens_per_second", "seconds")
        result = Result(
            run.place["seed"],
            scores=_scores(run),
            commit=run.origin["commit"],
            **{name: found[name] for name in names},
        )
        method.results[result.seed] = result
    for kind in (f"task {name}" for name in TASKS):
        for run in (run for run in runs if run.kind == kind):
            _add(run, methods[run.place["position"]].results[run.place["seed"]])
    return Ablation(baseline, methods, trained[0].shared)


def _scores(run):
    return {row["score"]: row["value"] for row in run.found.get("scores", ())}


def _add(run, result):
    """Adds what a test found to the result of its model."""
    result.test_seconds.append(run.found["seconds"])
    if "by_position" in run.found:
        if run.place["step"] is None:
            result.by_position.update(run.found["by_position"])
    elif run.place["step"] is None:
        result.scores.update(_scores(run))
    else:
        result.at_steps.setdefault(run.place["step"], {}).update(_scores(run))


def _check_sizes(runs):
    """Refuses models that brought rows of other lengths, or could take more pairs than others."""
    first = {}
    for run in runs:
        size = run.found.get("size")
        other, before = first.setdefault(run.kind, (run.name, size))
        if size != before:
            raise ValueError(
                "The models of an ablation must be tested on equal rows: as long, and as many. "
                "Move these folders away and give options that all models can follow (--length "
                f"for GLUE, --paradigms for BLiMP). Received: {other}: {before}; {run.name}: {size}"
            )
