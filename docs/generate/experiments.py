"""The part of `guides/experiments.md` that lists the experiments, made of their definitions."""

import pathlib

from training.command.report import table
from training.studies.papers.definition import SCALES, find, names
from training.studies.papers.runs import make_plan, nominal_device
from training.studies.papers.settings import Settings
from training.study.report import hours_text

PAGE = "guides/experiments.md"
COMMENT = "<!-- generated: experiments -->"
_PAGES = pathlib.Path(__file__).parents[1] / "pages"


def pages():
    """Returns the page with its list: a dictionary of path below `pages/` -> Markdown."""
    return {PAGE: filled((_PAGES / PAGE).read_text(encoding="utf-8"))}


def filled(text):
    """Returns a page with the lists of the experiments in place of the comment.

    Args:
        text: Markdown with the comment once.

    Raises:
        ValueError: if the comment is not there once.
    """
    if text.count(COMMENT) != 1:
        count = text.count(COMMENT)
        raise ValueError(f"{PAGE} must have the line {COMMENT!r} once. Received: {count} of them")
    experiments = [find(name) for name in names()]
    return text.replace(COMMENT, f"{questions(experiments)}\n\n{hours(experiments)}")


def questions(experiments):
    """Returns a table of what the experiments ask, where it is from, and what each needs."""
    rows = [
        [f"`{one.name}`", one.question, _source(one.source), _needs(one.scales["laptop"])]
        for one in experiments
    ]
    return table(["name", "question", "source", "needs"], rows)


def hours(experiments):
    """Returns a table of the planned hours of each scale, with the tokens of its rows."""
    rows = [[f"`{one.name}`", *(_planned(one, scale) for scale in SCALES)] for one in experiments]
    return table(["name", *(f"`{scale}`: hours (tokens of a row)" for scale in SCALES)], rows)


def _source(source):
    authors, _, _ = source.paper.partition(".")
    return f"[{authors}]({source.url}), {source.place}"


def _needs(scale):
    options = {"--data": scale.pretrain, "--preset": scale.preset, "--glue": scale.glue}
    options |= {"--squad-train": scale.squad, "--squad-dev": scale.squad}
    options |= {"--long-rows": scale.long_rows}
    return ", ".join(f"`{option}`" for option, part in options.items() if part)


def _planned(experiment, scale):
    if scale not in experiment.scales:
        return "-"
    plan = make_plan(experiment, Settings(name=experiment.name, scale=scale), nominal_device(scale))
    return f"{hours_text(plan.cost)} ({experiment.scales[scale].length})"
