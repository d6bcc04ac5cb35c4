"""Papers that disagree, and what our numbers can and cannot say about it."""

import math

from training.experiment.results import contrast
from training.presets.variant import parse


def claims(experiment):
    """Returns what the papers report of the same question.

    Args:
        experiment: an `Experiment` with a `disagreement`.

    Returns:
        List of dictionaries with `who`, `against`, `source`, `row`, `baseline`, `column` and
        `difference`, which is our subtraction of two cells.
    """
    tables = {table.title: table for table in experiment.tables}
    found = []
    for claim in experiment.disagreement["claims"]:
        table = tables[claim["table"]]
        cells = [table.value(claim[name], claim["column"]) for name in ("row", "baseline")]
        rest = {name: claim[name] for name in ("who", "against", "row", "baseline", "column")}
        difference = round(cells[0] - cells[1], 2)
        found.append({**rest, "source": table.source, "difference": difference})
    return found


def verdict(experiment, results):
    """Returns what our differences say of the claims, with their intervals.

    Args:
        experiment: an `Experiment` with a `disagreement`.
        results: its `Results`.

    Returns:
        List of dictionaries `position`, `baseline`, `score`, `mean`, `low`, `high`, `count` and
        `text`; numbers are `None` where they are not known.
    """
    reported = claims(experiment)
    found = []
    for pair in experiment.disagreement["contrasts"]:
        entry = {**pair, "score": results.headline}
        summary = contrast(results, results.headline, pair["position"], pair["baseline"])
        difference = None if summary is None else summary.difference
        if difference is None:
            numbers = dict.fromkeys(("mean", "low", "high", "count"))
            text = "not run, so nothing can be said."
        else:
            numbers = {name: getattr(difference, name) for name in ("mean", "low", "high", "count")}
            same = [claim for claim in reported if claim["against"] == pair["against"]]
            text = _words(summary, same, results.unit)
        names = [parse(pair[name]).label for name in ("position", "baseline")]
        found.append({**entry, **numbers, "text": f"{names[0]} less {names[1]}: {text}"})
    return found


def _words(summary, reported, unit):
    """Returns what one difference says of the claims that it bears on."""
    found = summary.difference
    said = [f"{claim['who']} {claim['difference']:+.2f}" for claim in reported]
    if math.isnan(found.low):
        return (
            f"{found.mean:+.2f} in one pair of {unit}, which tells nothing of the spread: it can "
            f"neither confirm nor contradict {' or '.join(said)}."
        )
    if summary.has_no_spread:
        return (
            f"{found.mean:+.2f} in each of {found.count} pairs of {unit}, no spread to judge by, "
            "as of models that always give the same answer: it can neither confirm nor contradict "
            f"{' or '.join(said)}."
        )
    held = [found.low <= claim["difference"] <= found.high for claim in reported]
    interval = (
        f"{found.mean:+.2f}, 95 % interval {found.low:+.2f} to {found.high:+.2f} over "
        f"{found.count} pairs of {unit}"
    )
    inside = [text for text, is_held in zip(said, held, strict=True) if is_held]
    outside = [text for text, is_held in zip(said, held, strict=True) if not is_held]
    if not outside:
        rest = (
            f"it holds what all report ({', '.join(inside)}), so these runs cannot tell who is "
            "right; so many would find, 4 times in 5, a true difference of "
            f"{found.detectable:.2f} or more"
        )
    elif not inside:
        rest = f"it holds none of what is reported ({', '.join(outside)})"
    else:
        rest = f"it holds {', '.join(inside)}, and not {', '.join(outside)}"
    return f"{interval}: {rest}."
