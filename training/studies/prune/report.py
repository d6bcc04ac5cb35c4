"""What curves of pruning tell: scores with intervals, and latencies."""

import numpy as np

from keras_tupe.metrics import wilson_interval
from training.command.report import table
from training.study.study import Report


def accuracy(point):
    """Returns the share of right answers of a point, and its Wilson interval at 95 %."""
    low, high = wilson_interval(point["right"], point["total"])
    return point["right"] / point["total"], float(low), float(high)


def curve(results, kind):
    """Returns the points of a curve that are not random, ascending, the whole model first."""
    chosen = [p for p in results["points"] if p["kind"] == kind and p["order"] != "random"]
    if not chosen:
        return []
    whole = [p for p in results["points"] if p["kind"] == "none"]
    return whole + sorted(chosen, key=lambda point: point["share"])


def random_scores(results, kind, share):
    """Returns the scores of the random points of a share, in the order of their seeds."""
    asked = (kind, "random", share)
    found = [p for p in results["points"] if (p["kind"], p["order"], p["share"]) == asked]
    return [accuracy(point)[0] for point in sorted(found, key=lambda point: point["seed"])]


def latency(results, point):
    """Returns the latency of a point's export, a dictionary, or `None` if it was not measured."""
    name = f"{point['kind']}/share-{point['share']:g}/{point['order']}"
    return (results["latency"] or {"milliseconds": {}})["milliseconds"].get(name)


def report(results):
    """Returns the `Report` of curves.

    Args:
        results: what is known of them, a dictionary for `study.json`.
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
    parts += [_scores(results, kind) for kind in ("heads", "weights") if curve(results, kind)]
    if results["skipped"]:
        parts.append(f"Left out, since they are too long for the model: {results['skipped']:,}.")
    if found := results["latency"]:
        parts.append(
            f"Latency: `serving_default` of the exported encoder, {found['batch']} x "
            f"{found['length']} tokens, in turn, medians. Weights at zero are multiplied like "
            "others."
        )
    return Report(f"Pruning, {results['position']}: {results['title']}", parts, results)


def _scores(results, kind):
    points, rows = curve(results, kind), []
    whole = latency(results, points[0])
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
        f"by {points[-1]['order']}",
        "95 % interval",
        "at random",
        "least to most",
        "parameters",
        "latency (ms)",
        "of whole",
    ]
    return table(header, rows, right=range(len(header)))
