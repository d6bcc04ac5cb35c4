"""The report of a probe: a page, `probe.json`, and a picture."""

import pathlib

from keras_tupe.data import write_json
from training.ablate.report_parts import (
    comparison,
    comparison_header,
    machine_words,
    note_on_comparisons,
    plain,
)
from training.command.durations import duration
from training.command.report_files import replaced_picture, replaced_text
from training.command.tables import table
from training.probe import findings
from training.probe.ceilings import EVERYWHERE, TRAINED

RESULTS, PAGE, PICTURE = "probe.json", "probe.md", "probe.png"
_BOUND = {True: " *", False: ""}


def page(results):
    """Returns the Markdown text of the content of `probe.json`."""
    settings, methods = results["settings"], results["methods"]
    seconds = [value for method in methods.values() for value in method["seconds"]]
    parts = [f"# Probes: {len(methods)} methods, {results['seeds']} seeds"]
    if results["violations"]:
        parts += ["**Scores that cannot be.** Look for the mistake before anything else."]
        parts += ["\n".join(f"- {line}" for line in results["violations"])]
    parts += [
        f"Command: `{results['command']}`",
        f"Commit of the runs: {results['commit']}. {machine_words(results['machine'])} A run took "
        f"{min(seconds):.0f} to {max(seconds):.0f} s, all of them {duration(sum(seconds))}.",
        f"Each run learns {len(results['tasks'])} tasks at once from {settings['steps']:,} steps "
        f"of {settings['batch_size']} fresh rows of {settings['length'] // 2} to "
        f"{settings['length']} tokens: {settings['num_layers']} layers, width "
        f"{settings['hidden_dim']}. Right answers in percent, with half of the 95 % interval of "
        f"the mean over seeds. {_note(results)}",
    ]
    for length in map(str, settings["lengths"]):
        where = "of training" if int(length) == settings["length"] else "longer than any of them"
        parts += [f"## Rows of {length} tokens, {where}", _scores(results, length)]
    parts += ["## What is possible", _possible(results), *_answers(results)]
    return "\n\n".join(parts) + "\n"


def write(out, results, text):
    """Writes `probe.json`, `probe.md` and `probe.png`, each whole or not at all.

    Args:
        out: the folder.
        results: content of `probe.json`.
        text: that of `probe.md`.
    """
    out = pathlib.Path(out)
    write_json(out / RESULTS, plain(results))
    replaced_text(out / PAGE, text)

    def draw(path):
        from training.probe.picture import draw_scores

        draw_scores(path, results)

    replaced_picture(out / PICTURE, draw)


def answers(results):
    """Returns what the methods say to each question that they can answer.

    Args:
        results: content of `probe.json`.

    Returns:
        Dictionary: `Question` -> (task, length) -> `Summary`.
    """
    values = {
        label: {
            task: {length: score["values"] for length, score in scores.items()}
            for task, scores in method["scores"].items()
        }
        for label, method in results["methods"].items()
    }
    asked = findings.questions(list(values), list(results["tasks"]))
    return {one: findings.answer(one, values) for one in asked}


def _scores(results, length):
    rows = []
    for label, method in results["methods"].items():
        bounds = results["ceilings"][method["order"]]
        cells = [
            _cell(scores[length], bounds[task][length] < 100)
            for task, scores in method["scores"].items()
        ]
        rows.append([label, *cells])
    return table(["method", *map(_words, results["tasks"])], rows)


def _cell(score, bounded):
    text = f"{score['mean']:.1f}"
    if len(score["values"]) > 1:
        text += f" +- {score['high'] - score['mean']:.1f}"
    return text + _BOUND[bounded]


def _note(results):
    bounded = any(method["order"] != EVERYWHERE for method in results["methods"].values())
    return "\\* cannot be 100 % by construction." if bounded else ""


def _possible(results):
    """Returns which methods know order how, and what they can reach."""
    kinds = {}
    for label, method in results["methods"].items():
        kinds.setdefault(method["order"], []).append(label)
    lengths = list(map(str, results["settings"]["lengths"]))
    rows = [
        [kind, ", ".join(labels), length]
        + [f"{results['ceilings'][kind][task][length]:.1f}" for task in results["tasks"]]
        for kind, labels in kinds.items()
        if kind != EVERYWHERE
        for length in lengths
    ]
    lines = [
        "An encoder that knows order `nowhere` permutes its answers as its tokens are permuted. "
        "One that knows it at positions of training only has rows drawn at random for all others "
        "in its position table, and does the same among them on average. What rows of the same "
        "tokens can have in common bounds the scores, in percent:"
    ]
    if rows:
        header = ["order known", "methods", "tokens", *map(_words, results["tasks"])]
        lines.append(table(header, rows))
    if EVERYWHERE in kinds:
        lines.append(f"Nothing bounds {', '.join(kinds[EVERYWHERE])}.")
    held = "No score is above its bound" if not results["violations"] else "Some are violated"
    if TRAINED in kinds and results["seeds"] > 1:
        held += "; for a mean over random rows the lower end of its 99.9 % interval counts"
    lines.append(f"{held}.")
    if TRAINED in kinds and results["seeds"] == 1:
        lines.append(
            f"The bound of {', '.join(kinds[TRAINED])} is that of a mean over random rows, and one "
            "seed is one draw of them: it was not compared."
        )
    return "\n\n".join(lines)


def _answers(results):
    found = answers(results)
    if not found:
        return []
    parts = ["## Findings"]
    parts += [
        f"{number}. {findings.sentence(*item)}" for number, item in enumerate(found.items(), 1)
    ]
    for question, comparisons in found.items():
        rows = [
            [_words(task), length, *comparison(summary, "+.1f")]
            for (task, length), summary in comparisons.items()
        ]
        header = ["task", "tokens", *comparison_header(question.other, question.baseline)]
        parts += [f"### {question.title}", table(header, rows)]
        parts += note_on_comparisons(len(rows), "task")
    return parts


def _words(name):
    return name.replace("_", " ")
