"""What a probe tells: scores, what is possible, what cannot be, and a few named questions."""

import dataclasses

from keras_tupe.metrics import mean_interval
from training.command.report import table
from training.studies.probe.ceilings import EVERYWHERE, KINDS, NOWHERE, TRAINED, ceiling
from training.studies.probe.tasks import TASKS
from training.study.report import comparison, comparison_header, note_on_comparisons, spread
from training.study.results import holm, summarize
from training.study.study import Report

_SURE = 0.999  # of the interval whose lower end must not be above a ceiling of a mean
_FEW = 3  # seeds that may agree by chance
_AT_CLS = ("absolute_position", "first_of_two", "majority")


@dataclasses.dataclass(frozen=True)
class Question:
    """A comparison of two methods: the difference is that of `other` less `baseline`."""

    title: str
    baseline: str
    other: str
    tasks: tuple = ()


def report(settings, results, tests):
    """Returns the `Report` of a probe.

    Args:
        settings: its `Settings`.
        results: the `Results`.
        tests: dictionary: (task, length) -> `AskedRows`.
    """
    bounds = ceilings(tests, settings.length)
    methods = methods_of(results)
    wrong = violations(methods, bounds)
    asked = {one: answer(one, methods) for one in questions(list(methods), settings.task_names)}
    first = []
    if wrong:
        first = ["**Scores that cannot be.** Look for the mistake before anything else."]
        first += ["\n".join(f"- {line}" for line in wrong)]
    parts = [
        f"Each run learns {len(settings.task_names)} tasks at once from {settings.steps:,} steps "
        f"of {settings.batch_size} fresh rows of {settings.length // 2} to {settings.length} "
        f"tokens: {settings.num_layers} layers, width {settings.hidden_dim}. Right answers in "
        f"percent, with half of the 95 % interval of the mean over seeds. {_note(methods)}",
    ]
    for length in settings.test_lengths:
        where = "of training" if length == settings.length else "longer than any of them"
        parts += [f"## Rows of {length} tokens, {where}", _scores(methods, bounds, length)]
    parts += ["## What is possible", _possible(methods, bounds, wrong), *_answers(asked)]
    numbers = {
        "tasks": {name: TASKS[name].summary for name in settings.task_names},
        "methods": {name: _record(method) for name, method in methods.items()},
        "ceilings": _nested(bounds),
        "violations": wrong,
        "findings": [_finding(*one) for one in asked.items()],
    }

    def draw(path):
        from training.studies.probe.picture import draw_scores

        draw_scores(path, methods, bounds, settings.length)

    title = f"Probes: {len(methods)} methods"
    return Report(title, parts, numbers, {"study.png": draw}, first, wrong)


def methods_of(results):
    """Returns what the runs of each method found: label -> `order`, `sees_order`, `scores`.

    `scores` is a dictionary: (task, length) -> `Summary`.
    """
    found = {}
    for run in results.runs:
        if "order" in run.found:
            found.setdefault(run.place["position"], []).append(run.found)
    rows = results.rows()
    cells = list(dict.fromkeys((row["score"], row["length"]) for row in rows))
    values = {cell: results.numbers("position", score=cell[0], length=cell[1]) for cell in cells}
    return {
        label: {
            "parameters": runs[0]["parameters"],
            "sees_order": runs[0]["sees_order"],
            # of runs that were found to know order otherwise, what bounds all of them
            "order": max((run["order"] for run in runs), key=KINDS.index),
            "scores": {
                cell: summarize({label: of[label]}, None)[label] for cell, of in values.items()
            },
        }
        for label, runs in found.items()
    }


def ceilings(tests, trained_length):
    """Returns what methods can score at most, in percent: kind -> (task, length) -> number."""
    return {
        kind: {cell: 100 * ceiling(rows, kind, trained_length) for cell, rows in tests.items()}
        for kind in KINDS
    }


def violations(methods, bounds):
    """Returns a sentence for each score that cannot be.

    Args:
        methods: what `methods_of` returned.
        bounds: what `ceilings` returned.
    """
    found = []
    for label, method in methods.items():
        kind = method["order"]
        if not method["sees_order"] and kind != NOWHERE:
            found.append(
                f"{label} must not see the order of tokens, as its record says, and its answers "
                "change with it."
            )
        for (task, length), summary in method["scores"].items():
            most = bounds[kind][task, length]
            reached = _reached(kind, list(summary.values.values()))
            if reached is not None and reached > most + 1e-9:
                found.append(
                    f"{label} cannot score above {most:.2f} % in {task} at {length} tokens, "
                    f"since it knows order {kind}, and scored {reached:.2f} %."
                )
    return found


def _reached(kind, values):
    """Returns what must not be above the ceiling, if anything is known of it.

    The best run, or of a mean over random rows the lower end of its interval.
    """
    if kind == NOWHERE:
        return max(values)
    if kind == TRAINED and (len(set(values)) > 1 or len(values) > _FEW):
        return mean_interval(values, level=_SURE)[1]
    return None


def questions(labels, tasks):
    """Returns the `Question`s that some methods can answer, with the tasks that they are asked of.

    Args:
        labels: of the methods, as tables call them.
        tasks: names of the tasks that were run.
    """
    found = [
        Question("Do untied positions help?", "absolute", "tupe_a"),
        Question("Does it help to untie [CLS]?", "tupe_a_tied_cls", "tupe_a", _AT_CLS),
    ]
    for label in labels:
        options = label.split(":")
        clips = [one for one in options if one.startswith("k=") and one != "k=null"]
        if clips:
            whole = ":".join(one for one in options if one not in clips)
            found.append(Question("Do clipped distances help?", whole, label))
    found = [
        dataclasses.replace(one, tasks=tuple(x for x in tasks if not one.tasks or x in one.tasks))
        for one in found
    ]
    return [one for one in found if one.tasks and {one.baseline, one.other} <= set(labels)]


def answer(question, methods):
    """Returns the comparisons of a question, corrected for their number by Holm.

    Args:
        question: a `Question`.
        methods: what `methods_of` returned.

    Returns:
        Dictionary: (task, length) -> `Summary` of the other method.
    """
    names, found = (question.baseline, question.other), {}
    for cell in methods[question.other]["scores"]:
        if cell[0] in question.tasks:
            values = {name: methods[name]["scores"][cell].values for name in names}
            found[cell] = summarize(values, question.baseline)[question.other]
    found = {cell: one for cell, one in found.items() if one.difference is not None}
    adjusted = holm([summary.p_value for summary in found.values()])
    return {
        cell: dataclasses.replace(summary, adjusted_p=p_value)
        for (cell, summary), p_value in zip(found.items(), adjusted, strict=True)
    }


def sentence(question, comparisons):
    """Returns what the comparisons say, in a sentence for each direction and for what is open.

    Args:
        question: a `Question`.
        comparisons: what `answer` returned.
    """
    parts = []
    for word in ("higher", "lower"):
        told = _told(comparisons, word, ", p = {adjusted_p:.2g}")
        if told:
            parts.append(f"{question.other} scores {word} than {question.baseline}: {told}.")
    if all(len(summary.values) == 1 for summary in comparisons.values()):
        parts.append("One seed of each cannot tell.")
    elif not parts:
        parts.append(f"No difference of {question.other} to {question.baseline} is left by Holm.")
    if told := _told(comparisons, "no spread to judge by"):
        parts.append(f"Without a spread to judge by: {told}.")
    return f"{question.title} {' '.join(parts)}"


def _told(comparisons, conclusion, more=""):
    """Returns where the comparisons have a conclusion, with the differences, or `""`."""
    return ", ".join(
        f"{task} at {length} ({found.difference.mean:+.1f}{more.format(**vars(found))})"
        for (task, length), found in comparisons.items()
        if found.conclusion() == conclusion
    )


def _nested(cells):
    """Returns numbers by (task, length) as JSON can hold them, at any depth."""
    found = {}
    for key, value in cells.items():
        if isinstance(key, tuple):
            found.setdefault(key[0], {})[str(key[1])] = value
        else:
            found[key] = _nested(value)
    return found


def _record(method):
    scores = {cell: summary.record() for cell, summary in method["scores"].items()}
    return {**method, "scores": _nested(scores)}


def _finding(question, comparisons):
    found = {cell: summary.record() for cell, summary in comparisons.items()}
    text = sentence(question, comparisons)
    return {**vars(question), "answer": text, "comparisons": _nested(found)}


def _tasks_of(methods):
    first = next(iter(methods.values()))["scores"]
    return list(dict.fromkeys(task for task, _ in first))


def _scores(methods, bounds, length):
    tasks, rows = _tasks_of(methods), []
    for label, method in methods.items():
        cells = [
            spread(method["scores"][task, length], ".1f")
            + (" *" if bounds[method["order"]][task, length] < 100 else "")
            for task in tasks
        ]
        rows.append([label, *cells])
    return table(["method", *map(_words, tasks)], rows)


def _note(methods):
    bounded = any(method["order"] != EVERYWHERE for method in methods.values())
    return "\\* cannot be 100 % by construction." if bounded else ""


def _possible(methods, bounds, wrong):
    """Returns which methods know order how, and what they can reach."""
    kinds, tasks = {}, _tasks_of(methods)
    for label, method in methods.items():
        kinds.setdefault(method["order"], []).append(label)
    lengths = list(dict.fromkeys(length for _, length in bounds[EVERYWHERE]))
    rows = [
        [kind, ", ".join(labels), str(length), *(f"{bounds[kind][x, length]:.1f}" for x in tasks)]
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
        lines.append(table(["order known", "methods", "tokens", *map(_words, tasks)], rows))
    if EVERYWHERE in kinds:
        lines.append(f"Nothing bounds {', '.join(kinds[EVERYWHERE])}.")
    several = any(len(x.values) > 1 for one in methods.values() for x in one["scores"].values())
    held = "No score is above its bound" if not wrong else "Some are violated"
    if TRAINED in kinds and several:
        held += "; for a mean over random rows the lower end of its 99.9 % interval counts"
    lines.append(f"{held}.")
    if TRAINED in kinds and not several:
        lines.append(
            f"The bound of {', '.join(kinds[TRAINED])} is that of a mean over random rows, and one "
            "seed is one draw of them: it was not compared."
        )
    return "\n\n".join(lines)


def _answers(found):
    if not found:
        return []
    parts = ["## Findings"]
    parts += [f"{number}. {sentence(*item)}" for number, item in enumerate(found.items(), 1)]
    for question, comparisons in found.items():
        rows = [
            [_words(task), str(length), *comparison(summary, "+.1f")]
            for (task, length), summary in comparisons.items()
        ]
        header = ["task", "tokens", *comparison_header(question.other, question.baseline)]
        parts += [f"### {question.title}", table(header, rows)]
        parts += note_on_comparisons(len(rows), "task")
    return parts


def _words(name):
    return name.replace("_", " ")
