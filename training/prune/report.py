"""The tables of a curve: scores with intervals, latencies, and which patterns are left."""

import numpy as np

from keras_tupe.analysis import ATTENTION_PATTERNS
from keras_tupe.metrics import wilson_interval
from training.command.tables import table
from training.prune.run import RANDOM, Point

_FEW = 6  # shares of the table of patterns


def accuracy(point):
    """Returns the share of right answers of a point, and its Wilson interval at 95 %.

    Args:
        point: an entry of `points` of the results.
    """
    low, high = wilson_interval(point["right"], point["total"])
    return point["right"] / point["total"], float(low), float(high)


def curve(results, kind):
    """Returns the points of a curve that are not random, ascending, the whole model first.

    Args:
        results: the content of `results.json`.
        kind: `"heads"` or `"weights"`.
    """
    chosen = [p for p in results["points"] if p["kind"] == kind and p["order"] != RANDOM]
    if not chosen:
        return []
    whole = [p for p in results["points"] if p["kind"] == "none"]
    return whole + sorted(chosen, key=lambda point: point["share"])


def random_scores(results, kind, share):
    """Returns the scores of the random points of a share, in the order of their seeds.

    Args:
        results, kind: as above.
        share: the share.
    """
    found = [
        point
        for point in results["points"]
        if (point["kind"], point["order"], point["share"]) == (kind, RANDOM, share)
    ]
    return [accuracy(point)[0] for point in sorted(found, key=lambda point: point["seed"])]


def latency(results, point):
    """Returns the latency of a point's export, a dictionary, or `None` if it was not measured.

    Args:
        results: as above.
        point: an entry of its `points`.
    """
    names = ("kind", "share", "order", "seed")
    name = Point(**{key: point[key] for key in names}).name
    return (results["latency"] or {"milliseconds": {}})["milliseconds"].get(name)


def left_by_pattern(results, point):
    """Returns how many heads of each pattern a point has, in all layers, or `None`.

    Args:
        results, point: as above.
    """
    if results["patterns"] is None:
        return None
    found = dict.fromkeys(ATTENTION_PATTERNS, 0)
    for layer, row in enumerate(results["importance"]):
        for head, value in enumerate(row):
            is_there = value is not None and head not in point["removed"].get(str(layer), [])
            found[results["patterns"][str(head)]] += is_there if value is not None else 0
    return found


def report(results):
    """Returns the report in Markdown.

    Args:
        results: the content of `results.json`.
    """
    parts = [
        f"Pruning of {results['preset']} ({results['position']}), scored on {results['title']}: "
        f"{results['points'][-1]['total']:,} answers each, with 95 % intervals (Wilson)."
        + (
            f" Fine-tuned for {results['finetune_epochs']} epochs after each pruning."
            if results["finetune_epochs"]
            else ""
        )
    ]
    for kind in ("heads", "weights"):
        if curve(results, kind):
            parts.append(_scores(results, kind))
    if curve(results, "heads") and results["patterns"] is not None:
        parts.append(_patterns(results))
    if results["skipped"]:
        parts.append(f"Left out, since they are too long for the model: {results['skipped']:,}.")
    if results["latency"]:
        found = results["latency"]
        parts.append(
            f"Latency: `serving_default` of the exported encoder, {found['batch']} x "
            f"{found['length']} tokens, in turn, medians. Weights at zero are multiplied like "
            "others."
        )
    return "\n\n".join(parts)


def _scores(results, kind):
    points, rows = curve(results, kind), []
    whole = latency(results, points[0])
    order = points[-1]["order"]
    for point in points:
        value, low, high = accuracy(point)
        others = random_scores(results, kind, point["share"])
        time = latency(results, point)
        rows.append(
            [
                f"{point['share']:.0%}",
                str(point["heads"]) if kind == "heads" else f"{point['zeros']:.0%}",
                f"{value:.1%}",
                f"{100 * low:.1f} to {100 * high:.1f}",
                f"{np.mean(others):.1%}" if others else "",
                f"{100 * min(others):.1f} to {100 * max(others):.1f}" if others else "",
                f"{point['parameters']:,}",
                f"{time['median']:.2f}" if time else "",
                f"{time['median'] / whole['median']:.0%}" if time else "",
            ]
        )
    header = [
        f"{kind} removed",
        "heads left" if kind == "heads" else "zeros",
        f"by {order}",
        "95 % interval",
        "at random",
        "least to most",
        "parameters",
        "latency (ms)",
        "of whole",
    ]
    return table(header, rows, right=range(len(header)))


def _patterns(results):
    points = curve(results, "heads")
    picked = np.unique(np.linspace(0, len(points) - 1, min(_FEW, len(points))).round().astype(int))
    chosen = [points[number] for number in picked]
    left = [left_by_pattern(results, point) for point in chosen]
    rows = []
    for name in ATTENTION_PATTERNS:
        if left[0][name]:
            values = [
                value
                for row in results["importance"]
                for head, value in enumerate(row)
                if value is not None and results["patterns"][str(head)] == name
            ]
            rows.append([name, f"{np.mean(values):.3g}", *(str(counts[name]) for counts in left)])
    header = ["pattern of heads", "mean importance"]
    header += [f"left at {point['share']:.0%}" for point in chosen]
    return table(header, rows, right=range(1, len(header)))
