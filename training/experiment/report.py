"""The report of an experiment: `report.md`, `report.json` and `report.png`."""

from keras_tupe.data import write_json
from training.ablate.report import plain
from training.command.report_files import replaced_picture, replaced_text
from training.experiment.tables import markdown
from training.experiment.verdict import claims, verdict

MARKDOWN, JSON, PICTURE = FILES = "report.md", "report.json", "report.png"


def write(out, plan, results, origin):
    """Writes the three files, each whole or not at all; the picture where matplotlib is.

    Args:
        out: folder, a `pathlib.Path`.
        plan, results, origin: see `as_json`.

    Returns:
        The text of `report.md`.
    """
    content = as_json(plan, results, origin)
    write_json(out / JSON, content)
    text = markdown(content, plan, results)
    replaced_text(out / MARKDOWN, text)
    replaced_picture(out / PICTURE, lambda path: _draw(path, plan, results))
    return text


def _draw(path, plan, results):
    from training.experiment.picture import draw

    draw(path, plan, results)


def as_json(plan, results, origin):
    """Returns the content of `report.json`: the paper's numbers and ours under keys of their own.

    Args:
        plan: the `Plan` that was carried out.
        results: its `Results`.
        origin: dictionary with `command`, `commit`, `machine`, `device` and `overrides`.
    """
    experiment, scale = plan.experiment, plan.scale
    disagree = experiment.disagreement
    return plain(
        {
            **origin,
            "experiment": experiment.name,
            "scale": scale.name,
            "question": experiment.question,
            "seconds": results.seconds,
            "paper": {
                "source": experiment.source,
                "protocol": experiment.protocol,
                "tables": [vars(one) for one in experiment.tables],
            },
            "ours": {
                "commands": [str(command) for command in plan.commands],
                "commits_of_runs": results.commits,
                "variants": scale.variants,
                "pretraining": scale.pretrain and scale.pretraining(),
                "glue": scale.glue,
                "squad": scale.squad,
                "headline": results.headline,
                "pairs_are": results.unit,
                "scores": {
                    score: {
                        "title": results.titles[score],
                        "methods": {name: one.record() for name, one in found.items()},
                    }
                    for score, found in results.summaries.items()
                },
                "share_of_steps_to_baseline": {
                    name: vars(one) for name, one in results.shares.items()
                },
                "unfinished": results.unfinished,
            },
            "differs": differs(plan, results, origin["overrides"]),
            "unknown": experiment.unknown,
            "disagreement": disagree
            and {
                "text": disagree["text"],
                "claims": claims(experiment),
                "ours": verdict(experiment, results),
            },
        }
    )


def differs(plan, results, overrides):
    """Returns sentences: what is not as in the paper, by the definition and by what was run.

    Args:
        plan: a `Plan`.
        results: its `Results`.
        overrides: dictionary of what the command line changed in the scale.
    """
    found = list(plan.scale.differs)
    found += [
        f"The command line asked for {name.replace('_', ' ')} {value}, which is not this scale's."
        for name, value in overrides.items()
    ]
    if plan.facts is not None:
        facts = plan.facts
        rows = "" if facts["rows"] is None else f", {facts['rows']:,} of them"
        found.append(
            f"Rows of {facts['length']} tokens of a vocabulary of {facts['vocabulary_size']:,}"
            f"{rows}: of your own text."
        )
    return found + [f"Reported by the runs: {change}." for change in results.changes]
