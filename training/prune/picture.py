"""Curves of pruning, drawn: scores, latencies, patterns of the heads that are left."""

import numpy as np
from matplotlib.figure import Figure

from keras_tupe.analysis import ATTENTION_PATTERNS
from training.command.pictures import save
from training.prune.report import accuracy, curve, latency, left_by_pattern, random_scores

_BY = {"heads": "least important first", "weights": "smallest first"}


def draw_pruning(path, results):
    """Draws the score over the share, the latency, and which patterns are left.

    Args:
        path: PNG file to write.
        results: the content of `results.json`.
    """
    kinds = [kind for kind in ("heads", "weights") if curve(results, kind)]
    panels = [(_draw_scores, kind) for kind in kinds]
    if "heads" in kinds and results["latency"]:
        panels.append((_draw_latency, "heads"))
    if "heads" in kinds and results["patterns"] is not None:
        panels.append((_draw_patterns, "heads"))
    columns = min(len(panels), 2)
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(5.6 * columns, 4.7 * rows), layout="constrained")
    for number, (draw, kind) in enumerate(panels):
        axes = figure.add_subplot(rows, columns, number + 1)
        draw(axes, results, kind)
        axes.set_xlabel(f"{kind} removed (%)")
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), fontsize=8)
    figure.suptitle(f"Pruning, {results['position']}: {results['title']}")
    save(figure, path)


def _shares(points):
    return [100 * point["share"] for point in points]


def _draw_scores(axes, results, kind):
    points = curve(results, kind)
    values, low, high = 100 * np.array([accuracy(point) for point in points]).T
    axes.errorbar(
        _shares(points),
        values,
        yerr=[values - low, high - values],
        fmt="o-",
        capsize=3,
        label=f"{_BY[kind]}, with 95 % intervals",
    )
    pruned = [point for point in points if random_scores(results, kind, point["share"])]
    if pruned:
        scores = [random_scores(results, kind, point["share"]) for point in pruned]
        count = min(map(len, scores))
        seeds = f"{count} seed{'s' if count > 1 else ''}"
        x = _shares(pruned)
        axes.plot(x, [100 * np.mean(s) for s in scores], "--", color="C1", label="at random, mean")
        for seed in range(count):
            axes.plot(
                x,
                [100 * s[seed] for s in scores],
                ".",
                color="C1",
                alpha=0.6,
                label=f"at random, {seeds}" if seed == 0 else None,
            )
    axes.axhline(100 * results["chance"], color="gray", linestyle=":", label="a blind choice")
    axes.set_ylabel(f"right (%), {results['title']}")
    axes.grid(alpha=0.3)


def _draw_latency(axes, results, kind):
    points = [point for point in curve(results, kind) if latency(results, point)]
    found = [latency(results, point) for point in points]
    median = np.array([entry["median"] for entry in found])
    ends = [
        median - [entry["low"] for entry in found],
        np.array([entry["high"] for entry in found]) - median,
    ]
    settings = results["latency"]
    axes.errorbar(
        _shares(points), median, yerr=ends, fmt="o-", capsize=3, label="median and quartiles"
    )
    axes.set_ylim(bottom=0)
    axes.set_ylabel(f"export, {settings['batch']} x {settings['length']} tokens (ms)")
    axes.grid(alpha=0.3)


def _draw_patterns(axes, results, kind):
    points = curve(results, kind)
    left = [left_by_pattern(results, point) for point in points]
    below = np.zeros(len(points))
    widths = np.diff(_shares(points)).min(initial=10) * 0.8
    for number, name in enumerate(ATTENTION_PATTERNS):
        counts = np.array([found[name] for found in left])
        if counts[0]:
            axes.bar(
                _shares(points), counts, widths, bottom=below, color=f"C{number + 2}", label=name
            )
            below = below + counts
    axes.set_ylabel("heads left, all layers, by pattern")
