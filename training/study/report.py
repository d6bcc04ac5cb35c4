"""What the reports of studies have in common: where runs come from, comparisons, tables."""

import dataclasses
import math

from training.command.report import duration, table
from training.study.results import LEVEL, summarize
from training.study.study import Report


def plain(value):
    """Returns what JSON can hold: texts as keys, lists, `None` for what is not finite."""
    if dataclasses.is_dataclass(value):
        value = vars(value)
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def machine_words(machine):
    """Returns a sentence on the kind of the machine."""
    if not machine:
        return "Machine not recorded."
    cores = machine.get("cores")
    device = machine.get("gpu") or f"{machine.get('cpu')}, {cores} core{'s' * (cores != 1)}"
    return f"Machine: {device}, {machine.get('backend')}."


def origin_of(results, command):
    """Returns paragraphs on where the runs come from, and on those that have no score.

    Args:
        results: a `Results`.
        command: the command line.
    """
    parts = [
        f"Command: `{command}`",
        f"Commit of the runs: {', '.join(results.commits)}. {machine_words(results.machine)} "
        f"{duration(results.seconds)} in all.",
    ]
    if results.unfinished:
        parts.append(f"Not finished, and not in the tables: {'; '.join(results.unfinished)}.")
    if results.diverged:
        steps = [f"{name} at step {step}" for name, step in results.diverged.items()]
        parts.append(f"Diverged, and in no number here: {', '.join(steps)}.")
    return parts


def comparison_header(what, baseline="baseline"):
    """Returns the heads of the columns that `comparison` fills."""
    return [f"{what} less {baseline}'s", "p", "p (Holm)", "conclusion"]


def comparison(summary, form):
    """Returns the cells of a `Summary`'s difference; dashes for the baseline."""
    found = summary.difference
    if found is None:
        return ["-", "-", "-", "-"]
    number = f"{found.mean:{form}}"
    if not math.isnan(found.low):
        number += f" ({found.low:{form}} to {found.high:{form}})"
    p_values = ["-" if math.isnan(p) else f"{p:.2g}" for p in (summary.p_value, summary.adjusted_p)]
    return [number, *p_values, summary.conclusion()]


def spread(found, form):
    """Returns a mean with half the width of its 95 % interval, if there is one."""
    text = f"{found.mean:{form}}"
    half = ".2g" if form.endswith("g") else form
    return text if math.isnan(found.low) else f"{text} +- {found.high - found.mean:{half}}"


def note_on_comparisons(count, what):
    """Returns a note on the p-values of a table with more than one, in a list, or an empty one.

    Args:
        count: number of comparisons in the table.
        what: what is compared, "method".
    """
    if count < 2:
        return []
    chance = 1 - (1 - LEVEL) ** count
    return [
        f"There are {count} comparisons in a table. If no {what} differed, the chance that one p "
        f"or more is below {LEVEL} would be up to {chance:.0%}; p (Holm) is corrected for that, "
        "within one table, and the conclusion uses it."
    ]


def compared(summaries, what, title, form=".4g"):
    """Returns the table of a score: means over seeds, and differences to the baseline.

    Args:
        summaries: dictionary: name -> `Summary`.
        what: what is compared, "method".
        title: head of the column of the score.
        form: of a number.
    """
    header = [what, "seeds", title, *comparison_header("score")]
    rows = [
        [name, str(len(one.values)), spread(one, form), *comparison(one, f"+{form}")]
        for name, one in summaries.items()
    ]
    return table(header, rows)


def usual_report(results, by, baseline=None):
    """Returns the `Report` of a study that says nothing else: a table for each score.

    Args:
        results: a `Results`.
        by: what is compared, a key of the rows.
        baseline: the one that others are compared with; the first by default.
    """
    from training.study.pictures import draw_differences

    parts, numbers, found = [], {}, {}
    for score in results.scores:
        values = results.numbers(by, score=score)
        first = next(iter(values), None) if baseline is None else baseline
        found[score] = summarize(values, first)
        parts += [f"## {score}", compared(found[score], by, score)]
        parts += note_on_comparisons(max(len(values) - 1, 0), by)
        numbers[score] = {name: one.record() for name, one in found[score].items()}
    pictures = {"study.png": lambda path: draw_differences(path, found)} if found else {}
    return Report(f"Compared by {by}", parts, {"scores": numbers}, pictures)
