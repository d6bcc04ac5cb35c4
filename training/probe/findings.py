"""What the runs say to a few named questions, each a comparison of two methods."""

import dataclasses

from keras_tupe.metrics import mean_interval, paired_difference
from training.ablate.statistics import Summary, holm

_AT_CLS = ("absolute_position", "first_of_two", "majority")


@dataclasses.dataclass(frozen=True)
class Question:
    """A comparison of two methods, task by task and length by length.

    Attributes:
        title: what is asked.
        baseline, other: labels of the methods; the difference is that of the other less this one.
        tasks: names of the tasks; in a question of none that was run, none for all.
    """

    title: str
    baseline: str
    other: str
    tasks: tuple = ()


def questions(labels, tasks):
    """Returns the questions that some methods can answer, with the tasks that they are asked of.

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
        methods: dictionary: label -> task -> length -> scores of all seeds.

    Returns:
        Dictionary: (task, length) -> `Summary` of the other method.
    """
    baseline, other = methods[question.baseline], methods[question.other]
    found = {}
    for task in question.tasks:
        for length, values in other[task].items():
            difference = paired_difference(baseline[task][length], values)
            seeds = dict(enumerate(values))
            found[task, length] = Summary(seeds, *mean_interval(values), difference)
    adjusted = holm([summary.p_value for summary in found.values()])
    return {
        key: dataclasses.replace(summary, adjusted_p=p_value)
        for (key, summary), p_value in zip(found.items(), adjusted, strict=True)
    }


def record(question, comparisons):
    """Returns a question and its answer, a dictionary of values that JSON can hold, but for NaN.

    Args:
        question: a `Question`.
        comparisons: what `answer` returned.
    """
    found = {}
    for (task, length), summary in comparisons.items():
        found.setdefault(task, {})[length] = summary.record()
    return {**vars(question), "answer": sentence(question, comparisons), "comparisons": found}


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
