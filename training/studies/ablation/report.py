"""The report of an ablation: tables, numbers and pictures."""

import math

import numpy as np

from training.command.report import table
from training.command.settings import COMMAND_LINE, nearest
from training.studies.ablation import over_steps
from training.studies.ablation.positions import by_position
from training.studies.ablation.results import LOSS
from training.study.report import (
    comparison,
    comparison_header,
    note_on_comparisons,
    spread,
)
from training.study.study import Report


def report(ablation, settings):
    """Returns the `Report` of an ablation.

    Args:
        ablation: an `Ablation`.
        settings: of the study.

    Raises:
        ValueError: if a baseline that is asked for is not there.
    """
    is_wish = settings.report_only and settings.given.get("baseline") == COMMAND_LINE
    if is_wish and ablation.baseline not in ablation.methods:
        raise ValueError(
            f"--baseline must be one of the methods that are there, {list(ablation.methods)}; the "
            f"nearest is {nearest(ablation.baseline, ablation.methods)!r}. "
            f"Received: {ablation.baseline!r}"
        )
    drawn = {"study.png": "draw"}
    drawn |= {"tasks.png": "draw_tasks"} if ablation.task_names else {}
    drawn |= {"positions.png": "draw_by_position"} if ablation.by_position else {}
    if ablation.tested_steps and ablation.task_names:
        drawn["steps.png"] = "draw_over_steps"
    pictures = {name: _drawing(how, ablation) for name, how in drawn.items()}
    parts = [_facts(ablation), *parts_of(ablation), *how_to_read(notes(ablation))]
    return Report("Positional methods compared", parts, as_json(ablation), pictures)


def _drawing(how, ablation):
    def draw(path):
        from training.studies.ablation import pictures  # matplotlib is not on every machine

        getattr(pictures, how)(path, ablation)

    return draw


def how_to_read(notes):
    """Returns a heading and a list of notes."""
    return ["## How to read this", "\n".join(f"- {note}" for note in notes)]


def as_json(ablation):
    """Returns everything that is known, a dictionary; what is not known is null."""
    return {
        "baseline": ablation.baseline,
        "positions": list(ablation.methods),
        "seeds": ablation.seeds,
        "settings": ablation.facts,
        "units": {
            LOSS: "nats",
            ablation.accuracy_name: "percent",
            **dict.fromkeys(ablation.number_names, "perplexity"),
            **ablation.parts,
            "tasks": "percent",
        },
        "sign": "difference = method less baseline",
        "methods": {name: _method(ablation, name) for name in ablation.methods},
        "over_steps": over_steps.as_json(ablation),
    }


def _method(ablation, name):
    method = ablation.methods[name]
    scores = {
        score: summaries[name].record()
        for score, summaries in ablation.summaries.items()
        if name in summaries
    }
    shares = ablation.shares.get(name)
    return {
        "position": method.position,
        "options": method.options,
        "encoder_parameters": method.encoder_parameters,
        "scores": scores,
        "share_of_steps_to_baseline": shares and shares.record(),
        "runs": {seed: vars(result) for seed, result in method.results.items()},
    }


def parts_of(ablation):
    """Returns the tables of an ablation and what is said of them, a list of texts."""
    return [
        "## Held-out loss",
        _loss_table(ablation),
        _verdicts(ablation, LOSS),
        *by_position(ablation),
        "## Steps, size and speed",
        _cost_table(ablation),
        *_tasks(ablation),
        *over_steps.over_steps(ablation),
    ]


def _facts(ablation):
    facts, results = ablation.facts, ablation.results
    return (
        f"Methods: {len(ablation.methods)}. Seeds: {', '.join(map(str, ablation.seeds))}. "
        f"{len(results)} runs of {facts['steps']:,} steps, {results[0].tokens[-1]:,} tokens each "
        f"(size `{facts['size']}`, {facts['length']} tokens per row, {facts['batch_size']} rows "
        f"per step). The baseline is `{ablation.baseline}`."
    )


def _ordered(ablation):
    """Returns the names of the methods, lowest loss first."""
    summaries = ablation.summaries[LOSS]
    return sorted(ablation.methods, key=lambda name: summaries[name].mean)


def _loss_table(ablation):
    numbers = ablation.number_names
    parts = ablation.parts
    header = ["method", "seeds", LOSS, *numbers, ablation.accuracy_name, *parts]
    header += comparison_header("loss")
    rows = []
    for name in _ordered(ablation):
        found = {score: summaries.get(name) for score, summaries in ablation.summaries.items()}
        loss, accuracy = found[LOSS], found[ablation.accuracy_name]
        row = [name, str(len(loss.values)), spread(loss, ".4f")]
        row += [spread(found[one], ".4g") if found[one] else "-" for one in numbers]
        row.append(spread(accuracy, ".2f") + " %")
        row += [_part(found.get(part), unit) for part, unit in parts.items()]
        rows.append([*row, *comparison(loss, "+.4f")])
    return table(header, rows)


def _part(summary, unit):
    """Returns the loss or the accuracy of one of several outputs."""
    if summary is None:
        return "-"
    return spread(summary, ".2f") + " %" if unit == "percent" else spread(summary, ".4f")


def _verdicts(ablation, score):
    lines = [
        f"- {name}: {summary.difference.verdict}"
        for name in _ordered(ablation)
        if (summary := ablation.summaries[score][name]).difference is not None
    ]
    if not lines and ablation.baseline in ablation.methods:
        return ""  # it is the only method
    if not lines:
        return f"No run of the baseline `{ablation.baseline}` is finished: nothing to compare with."
    return f"Each method against `{ablation.baseline}` ({score}):\n\n" + "\n".join(lines)


def _cost_table(ablation):
    header = [
        "method",
        "share of the steps to the baseline's final loss",
        "not reached",
        "parameters of the encoder",
        "tokens/s",
    ]
    rows = []
    for name in _ordered(ablation):
        method, shares = ablation.methods[name], ablation.shares.get(name)
        speeds = [one.tokens_per_second for one in method.results.values()]
        speeds = [speed for speed in speeds if speed is not None]
        rows.append(
            [
                name,
                _share(shares),
                "-" if shares is None else f"{shares.num_not_reached} of {len(shares.values)}",
                f"{method.encoder_parameters:,}",
                f"{np.median(speeds):,.0f}" if speeds else "-",
            ]
        )
    return table(header, rows)


def _share(shares):
    if shares is None or shares.mean is None:
        return "-"
    text = f"{shares.mean:.0%}"
    return text if math.isnan(shares.low) else f"{text} ({shares.low:.0%} to {shares.high:.0%})"


def _tasks(ablation):
    """Returns a heading and a table for each score of the tasks."""
    parts = []
    for score in ablation.task_names:
        summaries = ablation.summaries[score]
        header = ["method", "seeds", f"{score} (percent)", *comparison_header("score")]
        rows = [
            [
                name,
                str(len(summaries[name].values)),
                spread(summaries[name], ".2f"),
                *comparison(summaries[name], "+.2f"),
            ]
            for name in sorted(summaries, key=lambda name: -summaries[name].mean)
        ]
        parts += [f"## {score}", table(header, rows)]
    return parts


def notes(ablation):
    """Returns how to read the tables, a list of sentences."""
    count = sum(one.difference is not None for one in ablation.summaries[LOSS].values())
    baseline = ablation.baseline
    return [
        "Equal seeds have the same order of rows, the same masks and the same first weights, but "
        "for the weights that are a method's own. So runs are compared in pairs of equal seeds.",
        f"Differences are the method less `{baseline}`. A lower loss is better, a negative "
        "difference; a higher accuracy or score is better.",
        "Intervals hold 95 % (Student's t over seeds, which takes them to be normal). p is of the "
        "paired t test.",
        *note_on_comparisons(count, "method"),
        "*too few seeds to tell*: what was seen may be luck. It does not mean that the methods are "
        "equal; the list says how large a difference so many seeds would find.",
        "The share of the steps is read from each seed's held-out curve, on lines between the "
        f"validations, against the final loss of `{baseline}` with that seed. Mean and interval "
        "are of the seeds that reached it. All curves are of the whole schedule of learning rates: "
        "a run planned to be shorter would be lower at its end than this one is there.",
        "tokens/s is the median over log and seeds, of this machine with whatever else it did.",
    ]
