"""Curves of pruning, drawn: scores and latencies."""

import numpy as np

from training.command.report import save
from training.studies.prune.report import accuracy, curve, latency, random_scores
from training.study.pictures import panels

_BY = {"heads": "least important first", "weights": "smallest first"}
_BARS = {"fmt": "o-", "capsize": 3}


def draw_pruning(path, results):
    """Draws the score over the share, and the latency.

    Args:
        path: PNG file to write.
        results: what is known of the curves.
    """
    drawn = [(_draw_scores, kind) for kind in ("heads", "weights") if curve(results, kind)]
    if curve(results, "heads") and results["latency"]:
        drawn.append((_draw_latency, "heads"))
    title = f"Pruning, {results['position']}: {results['title']}"
    figure, axes = panels(len(drawn), (5.6, 4.7), title)
    for panel, (draw, kind) in zip(axes, drawn, strict=True):
        draw(panel, results, kind)
        panel.set_xlabel(f"{kind} removed (%)")
        panel.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), fontsize=8)
        panel.grid(alpha=0.3)
    save(figure, path)


def _shares(points):
    return [100 * point["share"] for point in points]


def _draw_scores(axes, results, kind):
    points = curve(results, kind)
    values, low, high = 100 * np.array([accuracy(point) for point in points]).T
    label = f"{_BY[kind]}, with 95 % intervals"
    axes.errorbar(_shares(points), values, yerr=[values - low, high - values], label=label, **_BARS)
    found = {point["share"]: random_scores(results, kind, point["share"]) for point in points}
    found = {100 * share: 100 * np.array(scores) for share, scores in found.items() if scores}
    if found:
        means = [scores.mean() for scores in found.values()]
        axes.plot(list(found), means, "--", color="C1", label="at random, mean")
        label = "at random, a seed"
        for share, scores in found.items():
            axes.plot([share] * len(scores), scores, ".", color="C1", alpha=0.6, label=label)
            label = None
    axes.axhline(100 * results["chance"], color="gray", linestyle=":", label="a blind choice")
    axes.set_ylabel(f"right (%), {results['title']}")


def _draw_latency(axes, results, kind):
    points = [point for point in curve(results, kind) if latency(results, point)]
    low, median, high = np.array(
        [[latency(results, point)[x] for x in ("low", "median", "high")] for point in points]
    ).T
    ends, label = [median - low, high - median], "median and quartiles"
    axes.errorbar(_shares(points), median, yerr=ends, label=label, **_BARS)
    axes.set_ylim(bottom=0)
    found = results["latency"]
    axes.set_ylabel(f"export, {found['batch']} x {found['length']} tokens (ms)")
