"""Scores of the ablations of several objectives, compared with those of the first."""

import dataclasses
import functools

import numpy as np

from training.command.report import duration, table
from training.studies.ablation.objectives import RunCost
from training.studies.ablation.report import as_json, how_to_read, parts_of
from training.studies.ablation.results import collect
from training.study.report import comparison, comparison_header, note_on_comparisons, spread
from training.study.results import holm, summarize
from training.study.study import Report


@dataclasses.dataclass(frozen=True)
class Comparison:
    """The ablations of several objectives.

    Attributes:
        objectives: names of all, that which the others are compared with first.
        ablations: dictionary: name of an objective -> `Ablation`; those with a finished run.
        costs: dictionary: name -> `RunCost`.
    """

    objectives: list
    ablations: dict
    costs: dict

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


def report(results, names, baseline):
    """Returns the `Report` on objectives, and on the methods within each.

    Args:
        results: `Results` of the study.
        names: of the objectives, that to compare with first.
        baseline: name of the positional method that others are compared with.
    """
    ablations = {name: collect(results, baseline, objective=name) for name in names}
    costs = {name: _cost(results.of(f"pretrain {name}"), ablations[name]) for name in names}
    found = Comparison(names, ablations, costs)
    parts = [
        _facts(found),
        "## What a run costs",
        cost_table(found.costs),
        _cost_words(found),
        *(part for score in found.scores for part in _score(found, score)),
        _no_scores(found),
        *how_to_read(_notes(found)),
    ]
    for name, one in ablations.items():
        inner = [
            part.replace("## ", "### ") if part[:3] == "## " else part for part in parts_of(one)
        ]
        parts += [f"## Methods within {name}", *inner]

    def draw(path):
        from training.study.pictures import draw_rows

        draw_rows(path, found.summaries, found.title, "percent; right is better")

    numbers = {
        "objectives": names,
        "baseline": found.baseline,
        "positions": found.methods,
        "seeds": found.seeds,
        "equal_flops": found.is_equal,
        "costs": {name: {**vars(cost), "flops": cost.flops} for name, cost in costs.items()},
        "units": "percent",
        "sign": "difference = objective less baseline, of one method",
        "scores": {
            score: {
                method: {name: summary.record() for name, summary in summaries.items()}
                for method, summaries in methods.items()
            }
            for score, methods in found.summaries.items()
        },
        "within": {name: as_json(one) for name, one in ablations.items()},
    }
    return Report(found.title, parts, numbers, {"study.png": draw} if found.scores else {})


def _cost(runs, ablation):
    """Returns the `RunCost` of finished runs of one objective."""
    seconds = float(np.mean([run.found["seconds"] for run in runs]))
    facts = ablation.facts
    tokens = facts["steps"] * facts["batch_size"] * facts["length"]
    return RunCost(facts["steps"], tokens, runs[0].found["step_flops"], seconds)


def _facts(found):
    facts = next(iter(found.ablations.values())).facts
    first = (
        f"Objectives: {', '.join(found.ablations)}. Methods: {', '.join(found.methods)}. Seeds: "
        f"{', '.join(map(str, found.seeds))}. {len(found.results)} runs (size `{facts['size']}`, "
        f"{facts['length']} tokens per row, {facts['batch_size']} rows per step). The objective "
        f"that others are compared with is `{found.baseline}`."
    )
    return first


def cost_table(costs):
    """Returns what a run of each objective costs, as a table.

    Args:
        costs: dictionary: name of an objective -> `RunCost`, that to compare with first.
    """
    header = ["objective", "steps", "tokens", "FLOPs of a step", "FLOPs of a run", "of the first's"]
    is_timed = any(cost.seconds is not None for cost in costs.values())
    header += ["time of training"] * is_timed
    first, rows = next(iter(costs.values())).flops, []
    for name, cost in costs.items():
        row = [name, f"{cost.steps:,}", f"{cost.tokens:,}"]
        row += [f"{cost.step_flops:.4g}", f"{cost.flops:.4g}", f"{cost.flops / first:.2%}"]
        rows.append([*row, duration(cost.seconds)] if is_timed else row)
    return table(header, rows)


def _cost_words(found):
    promise = (
        "All runs have the same model FLOPs, to the nearest step."
        if found.is_equal
        else "**The runs do not cost the same**: they were not made by one study with "
        "`--objectives`, and what follows is no comparison at equal cost."
    )
    return (
        f"{promise} `keras_tupe.trainer.step_flops` counts the matrix products of the forward "
        "pass, and twice as many for the backward pass, of all models that an objective trains (of "
        "replaced tokens the generator's too). Not counted: normalizations, softmax, gathering of "
        "embeddings, the optimizer, what positional methods do, validations, and the tests of the "
        "models. So steps, tokens and time differ between objectives. The time is the mean of the "
        f"runs ({'; '.join(_counts(found))}), on this machine with whatever else it did, "
        "validations included."
    )


def _counts(found):
    return [f"{len(one.results)} of {name}" for name, one in found.ablations.items()]


def _score(found, score):
    """Returns a heading, the table of a score, and what the seeds tell of each difference."""
    baseline, rows, verdicts = found.baseline, [], []
    for method, summaries in found.summaries[score].items():
        for name, summary in summaries.items():
            row = [method, name, str(len(summary.values)), spread(summary, ".2f")]
            rows.append([*row, *comparison(summary, "+.2f")])
            if summary.difference is not None:
                told = summary.difference.verdict.replace("the baseline", f"`{baseline}`")
                verdicts.append(f"- {method}, {name}: {told}")
    header = ["method", "objective", "seeds", f"{score} (percent)"]
    header += comparison_header("score", baseline)
    parts = [f"## {score}", table(header, rows)]
    if not verdicts:
        return [*parts, f"No seed of `{baseline}` is tested: nothing to compare with."]
    return [*parts, "\n".join(verdicts)]


def _no_scores(found):
    if found.scores:
        return ""
    return (
        "There is no score that all objectives have. Test the models in tasks (`--tasks`, "
        "`--blimp`): losses are of different predictions and tell nothing of which objective is "
        "better."
    )


def _notes(found):
    baseline = found.baseline
    notes = [
        "Held-out losses and accuracies of pre-training are not compared: each objective predicts "
        "something else. Below, methods are compared within an objective.",
        f"Differences are the objective less `{baseline}`, of the same method; a higher score is "
        "better. Runs of equal seeds are compared in pairs: they read the same rows in the same "
        "order, and one that has more steps reads more of them.",
        "+- is half of the 95 % interval of the mean (Student's t over seeds, which takes them to "
        "be normal). p is of the paired t test.",
        "*too few seeds to tell*: what was seen may be luck. It does not mean that the objectives "
        "are equal.",
        "All objectives have the same learning rate and size: others, or a longer training, may "
        "order them otherwise.",
    ]
    if any("BLiMP" in score for score in found.scores):
        notes.append(
            "BLiMP asks each model in its own way: a masked language model for the "
            "pseudo-log-likelihood of the sentences, a causal one for their log-likelihood, a "
            "discriminator for how likely each token is the sentence's own. The pairs are the "
            "same; the question is not quite."
        )
    count = max((_num_comparisons(found, score) for score in found.scores), default=0)
    return notes + note_on_comparisons(count, "objective")


def _num_comparisons(found, score):
    return sum(
        summary.difference is not None
        for summaries in found.summaries[score].values()
        for summary in summaries.values()
    )
