"""The report of an experiment: the paper's numbers, and ours beside them."""

import math

from training.command.report import table
from training.command.variant import parse
from training.finetune.glue.protocol import PROTOCOLS
from training.studies.ablation.results import LOSS
from training.studies.papers.results import AVERAGE, claims, verdict
from training.study.report import spread
from training.study.study import Report


def report(plan, results, overrides):
    """Returns the `Report` of an experiment.

    Args:
        plan: the `Plan` that was carried out.
        results: its `Results`.
        overrides: what the command line changed in the scale, a dictionary.
    """
    content = as_json(plan, results, overrides)

    def draw(path):
        from training.studies.papers.picture import draw

        draw(path, plan, results)

    title = f"{plan.experiment.name}, scale {plan.scale.name}"
    return Report(title, parts_of(content, plan, results), content, {"study.png": draw})


def as_json(plan, results, overrides):
    """Returns all that is known: the paper's numbers and ours under keys of their own.

    Args:
        plan: the `Plan` that was carried out.
        results: its `Results`.
        overrides: what the command line changed in the scale, a dictionary.
    """
    experiment, scale = plan.experiment, plan.scale
    disagree = experiment.disagreement
    return {
        "overrides": overrides,
        "experiment": experiment.name,
        "scale": scale.name,
        "question": experiment.question,
        "paper": {
            "source": experiment.source,
            "protocol": experiment.protocol,
            "tables": experiment.tables,
        },
        "ours": {
            "commands": [str(command) for command in plan.commands],
            "variants": scale.variants,
            "pretraining": scale.pretrain and scale.pretrain.values(),
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
            "share_of_steps_to_baseline": results.shares,
        },
        "differs": differs(plan, results, overrides),
        "unknown": experiment.unknown,
        "disagreement": disagree
        and {
            "text": disagree.text,
            "claims": claims(experiment),
            "ours": verdict(experiment, results),
        },
    }


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


def parts_of(content, plan, results):
    """Returns the texts of the report, a list; `content` is what `as_json` returned."""
    experiment = plan.experiment
    parts = [
        experiment.question,
        "Numbers of papers and numbers of ours stand in tables of their own, each with its source. "
        "They are of other models, texts and settings (see below): compare signs and sizes of "
        "differences, not scores."
        if experiment.tables
        else "No number of a paper stands beside ours: the question is the paper's, the models are "
        "too small to be compared with its own.",
    ]
    for one in experiment.tables:
        parts += [f"## Theirs: {one.source}", f"{one.title}.", _paper_table(one)]
    parts += [f"## Ours: {experiment.name} at scale {plan.scale.name}"]
    parts += [_our_table(plan, results), _difference_table(results), _share_table(results)]
    parts += results.sections
    if results.unfinished:
        parts.append(f"Not finished, and not in the tables: {'; '.join(results.unfinished)}.")
    if content["disagreement"]:
        columns = [name for name in results.summaries if name.startswith("GLUE ")]
        parts += ["## Where the papers disagree", _disagreement(content["disagreement"], columns)]
    parts += ["## What differs from the paper", _bullets(content["differs"])]
    parts += ["## What the paper did", _bullets(experiment.protocol)]
    parts += ["## What is not known of the paper", _bullets(experiment.unknown)]
    parts += ["## How to read this", _bullets(_notes(plan, results))]
    return parts


def _paper_table(one):
    header = [""] + [f"{column.name} ({column.metric})" for column in one.columns]
    columns = zip(*(row.values for row in one.rows), strict=True)
    digits = [max(len(str(value).partition(".")[2]) for value in column) for column in columns]
    rows = [
        [row.name, *(f"{x:.{n}f}" for x, n in zip(row.values, digits, strict=True))]
        for row in one.rows
    ]
    return table(header, rows)


def _our_table(plan, results):
    names = {parse(one.position).label: one.name for one in plan.scale.variants}
    scores = list(results.summaries)
    header = ["method", "as in the paper", f"{results.unit}", *(results.titles[s] for s in scores)]
    labels = list(dict.fromkeys(name for found in results.summaries.values() for name in found))
    rows = []
    for label in labels:
        first = next(found[label] for found in results.summaries.values() if label in found)
        row = [label, names.get(label.split(", ")[0], ""), str(len(first.values))]
        for score in scores:
            found = results.summaries[score].get(label)
            row.append("-" if found is None else spread(found, _form(score)))
        rows.append(row)
    return table(header, rows)


def _form(score):
    return ".4f" if score == LOSS else ".2f"


def _difference_table(results):
    """Returns the differences to the baseline in what the experiment is about."""
    score = results.headline
    found = results.summaries[score]
    compared = {name: one for name, one in found.items() if one.difference is not None}
    if not compared:
        return ""
    base = next(name for name in found if name not in compared)
    header = ["method", f"{score} less that of {base}", "95 % interval", "p (Holm)", "conclusion"]
    rows = []
    for name, one in compared.items():
        form, pair = "+" + _form(score), one.difference
        is_known = not math.isnan(pair.low)
        interval = f"{pair.low:{form}} to {pair.high:{form}}" if is_known else "-"
        p_value = "-" if math.isnan(one.adjusted_p) else f"{one.adjusted_p:.2g}"
        rows.append([name, f"{pair.mean:{form}}", interval, p_value, one.conclusion()])
    return table(header, rows)


def _share_table(results):
    rows = [
        [name, "never" if one.mean is None else f"{one.mean:.0%}", _between(one)]
        for name, one in results.shares.items()
    ]
    if len(rows) < 2:
        return ""
    return table(["method", "share of the steps to the baseline's final loss", "95 %"], rows)


def _between(share):
    parts = []
    if share.mean is not None and not math.isnan(share.low):
        parts.append(f"{share.low:.0%} to {share.high:.0%}")
    if share.num_not_reached:
        parts.append(f"not reached by {share.num_not_reached} of {len(share.values)}")
    return ", ".join(parts) or "-"


def _disagreement(content, columns):
    header = ["who", "theirs", "difference in points", "source"]
    rows = [
        [
            one["who"],
            f"{one['row']} less {one['baseline']}, {one['column']}",
            f"{one['difference']:+.2f}",
            one["source"],
        ]
        for one in content["claims"]
    ]
    ours = _bullets([one["text"] for one in content["ours"]])
    names = [name.removeprefix("GLUE ") for name in columns if name != AVERAGE]
    what = f"the mean of {', '.join(names)}" if len(names) > 1 else content["ours"][0]["score"]
    return (
        f"{content['text']}\n\n{table(header, rows)}\n\nOurs, of {what}:\n\n{ours}\n\n"
        "What ours cannot say: anything about models of another size, other text, other tasks or "
        "longer training than these. An interval that leaves a paper's number out shows that the "
        "effect is another one here, not that the paper is wrong."
    )


def _bullets(sentences):
    return "\n".join(f"- {sentence}" for sentence in sentences)


def _notes(plan, results):
    notes = [
        f"+- and intervals are at 95 %, Student's, over {results.unit}; equal seeds are compared "
        "in pairs. p (Holm) is corrected for the number of comparisons in the table.",
        "*too few seeds to tell*: what was seen may be luck. It does not mean equal.",
    ]
    if plan.scale.glue is not None:
        source = PROTOCOLS[plan.scale.glue.protocol].source
        notes.append(
            "A score of GLUE is the median over the seeds of fine-tuning at the best learning rate "
            f"({source}); the average is the plain mean of the columns that are here."
        )
    if plan.scale.pretrain is not None:
        notes.append("More, with curves: `ablation/study.md` and `ablation/study.png`.")
    return notes
