"""What the reports of ablations, comparisons of objectives and experiments have in common."""

import dataclasses
import math

from training.ablate.statistics import LEVEL
from training.command.durations import duration


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


def origin_of(found, origin, more=""):
    """Returns paragraphs on where the runs come from, and which are not finished.

    Args:
        found: has `results` and `unfinished`, as an `Ablation` has.
        origin: dictionary with `command` and `machine` of the report.
        more: what is said of the time.
    """
    commits = sorted({str(result.commit) for result in found.results})
    seconds = sum(result.seconds for result in found.results)
    parts = [
        f"Command: `{origin['command']}`",
        f"Commit of the runs: {', '.join(commits)}. {machine_words(origin['machine'])} "
        f"{duration(seconds)} in all{more}.",
    ]
    if found.unfinished:
        parts.append(f"Not finished, and not in the tables: {'; '.join(found.unfinished)}.")
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
