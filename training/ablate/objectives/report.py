"""The report on several objectives: `objectives.json`, `objectives.md`, `objectives.png`."""

import pathlib

from keras_tupe.data import write_json
from training.ablate.objectives.settings import JSON
from training.ablate.report import origin_of
from training.command.durations import duration
from training.command.report_files import replaced_picture, replaced_text
from training.command.tables import table
from training.study.report import (
    comparison,
    comparison_header,
    note_on_comparisons,
    plain,
    spread,
)

MARKDOWN, PICTURE = "objectives.md", "objectives.png"
FILES = (MARKDOWN, JSON, PICTURE)


def write(out, found, origin):
    """Writes the files; each is the new one or the old one, never a part.

    Args:
        out: folder.
        found: a `Comparison`.
        origin: dictionary with `command`, `commit` and `machine` of the report.

    Returns:
        The text of `objectives.md`.
    """
    out = pathlib.Path(out)
    write_json(out / JSON, as_json(found, origin))
    text = markdown(found, origin)
    replaced_text(out / MARKDOWN, text)
    if found.scores:
        replaced_picture(out / PICTURE, lambda path: _draw(path, found))
    return text


def _draw(path, found):
    from training.ablate.objectives.picture import draw  # matplotlib is not on every machine

    draw(path, found)


def as_json(found, origin):
    """Returns everything that is known, as values that JSON can hold; what is not known is null."""
    scores = {
        score: {
            method: {name: summary.record() for name, summary in summaries.items()}
            for method, summaries in methods.items()
        }
        for score, methods in found.summaries.items()
    }
    return plain(
        {
            **origin,
            "objectives": found.objectives,
            "baseline": found.baseline,
            "positions": found.methods,
            "seeds": found.seeds,
            "unfinished": found.unfinished,
            "equal_flops": found.is_equal,
            "costs": {
                name: {**vars(cost), "flops": cost.flops} for name, cost in found.costs.items()
            },
            "units": "percent",
            "sign": "difference = objective less baseline, of one method",
            "scores": scores,
        }
    )


def markdown(found, origin):
    """Returns `objectives.md`.

    Args:
        found: a `Comparison`.
        origin: dictionary with `command`, `commit` and `machine` of the report.
    """
    parts = [
        f"# {found.title}",
        _facts(found, origin),
        "## What a run costs",
        cost_table(found.costs),
        _cost_words(found),
        *(part for score in found.scores for part in _score(found, score)),
        _no_scores(found),
        "## How to read this",
        "\n".join(f"- {note}" for note in _notes(found)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _facts(found, origin):
    facts = next(iter(found.ablations.values())).facts
    first = (
        f"Objectives: {', '.join(found.ablations)}. Methods: {', '.join(found.methods)}. Seeds: "
        f"{', '.join(map(str, found.seeds))}. {len(found.results)} runs (size `{facts['size']}`, "
        f"{facts['length']} tokens per row, {facts['batch_size']} rows per step). The objective "
        f"that others are compared with is `{found.baseline}`."
    )
    return "\n\n".join([first, *origin_of(found, origin, ", tests included")])


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
        else "**The runs do not cost the same**: they were not made by one `training.ablate "
        "--objectives`, and what follows is no comparison at equal cost."
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
        "something else. They are in `OBJECTIVE/ablation.md`, where methods are compared within "
        "an objective.",
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
