"""Scores of tasks over the steps of pre-training, where there are presets on the way."""

import math

from training.command.report import table
from training.study.report import spread
from training.study.results import shares_to_baseline, summarize


def summaries_at(ablation, score):
    """Returns what the methods score at each tested step.

    Args:
        ablation: an `Ablation`.
        score: name of a score.

    Returns:
        Dictionary: step, ascending -> method -> `Summary`.
    """
    found = {name: ablation.scores_of_steps(name, score) for name in ablation.methods}
    return {
        step: summarize(
            {
                name: {seed: at[step] for seed, at in seeds.items() if at[step] is not None}
                for name, seeds in found.items()
            },
            ablation.baseline,
        )
        for step in ablation.tested_steps
    }


def shares_to_score(ablation, score):
    """Returns after what share of the steps a method scores what the baseline does at the end.

    Between two tested steps a score is taken to change on a line; where the first tested step is
    above already, that step counts, since nothing is known of what was before.

    Args:
        ablation: an `Ablation`.
        score: name of a score, of which more is better.

    Returns:
        Dictionary: method -> `Shares`. Seeds without the score at a step are left out.
    """
    curves = {}
    for name in ablation.methods:
        seeds = ablation.scores_of_steps(name, score)
        curves[name] = {
            seed: (list(at), [-value for value in at.values()])
            for seed, at in seeds.items()
            if None not in at.values()
        }
    return shares_to_baseline(curves, ablation.baseline, ablation.steps)


def as_json(ablation):
    """Returns all numbers over the steps, a dictionary; empty where no step on the way has any."""
    if not ablation.tested_steps:
        return {}
    return {
        score: {
            "steps": {
                step: {name: one.record() for name, one in found.items()}
                for step, found in summaries_at(ablation, score).items()
            },
            "share_of_steps_to_baseline": {
                name: one.record() for name, one in shares_to_score(ablation, score).items()
            },
        }
        for score in ablation.task_names
    }


def over_steps(ablation):
    """Returns a heading, a table for each task and a note; nothing without steps on the way.

    Args:
        ablation: an `Ablation`.
    """
    if not ablation.tested_steps or not ablation.task_names:
        return []
    parts = ["## Scores over the steps of pre-training"]
    for score in ablation.task_names:
        parts += [f"{score}, percent:", _table(ablation, score)]
    baseline = ablation.baseline
    parts.append(
        "Each preset on the way was fine-tuned or scored as the last one. +- is half of the 95 % "
        f"interval of the mean over seeds; in brackets the mean less that of `{baseline}` at the "
        "same step, with p after Holm's correction for the methods of the column. The last column "
        f"is the share of all steps after which a seed scores what `{baseline}` does with this "
        "seed at the end, read on lines between the steps that were tested: it cannot be less "
        "than the first of these. Picture: `steps.png`."
    )
    return parts


def _table(ablation, score):
    found, shares = summaries_at(ablation, score), shares_to_score(ablation, score)
    header = ["method", *(f"{step:,} steps" for step in found), "share of the steps"]
    rows = [
        [name, *(_cell(at.get(name)) for at in found.values()), share_text(shares.get(name))]
        for name in ablation.methods
    ]
    return table(header, rows)


def _cell(summary):
    if summary is None:
        return "-"
    text, pair = spread(summary, ".2f"), summary.difference
    if pair is None:
        return text
    p_value = "" if math.isnan(summary.adjusted_p) else f", p {summary.adjusted_p:.2g}"
    return f"{text} ({pair.mean:+.2f}{p_value})"


def share_text(shares):
    """Returns a share with its interval, and how many seeds never got there.

    Args:
        shares: a `Shares`, or `None`.
    """
    if shares is None:
        return "-"
    text = "" if shares.mean is None else f"{shares.mean:.0%}"
    if shares.mean is not None and not math.isnan(shares.low):
        text += f" ({shares.low:.0%} to {shares.high:.0%})"
    if shares.num_not_reached:
        not_reached = f"not reached by {shares.num_not_reached} of {len(shares.values)}"
        text = f"{text}, {not_reached}" if text else not_reached
    return text
