"""The picture of several objectives: their scores, with intervals."""

import math

import numpy as np
from matplotlib import colormaps
from matplotlib.figure import Figure

from training.command.pictures import save

_COLUMNS = 3  # of panels
_ROOM = 0.7  # of a method's line for its objectives


def draw(path, found):
    """Draws a panel for each score that all objectives have.

    A line is a method, a color an objective, the first on top: a dot is a seed, the upright bar is
    the mean over seeds, the line its 95 % interval. An interval that is wider than three
    times what the seeds of a panel span is cut at its edge.

    Args:
        path: PNG file to write.
        found: a `Comparison` with scores.
    """
    scores, methods = found.scores, found.methods
    columns = min(_COLUMNS, len(scores))
    rows = math.ceil(len(scores) / columns)
    height = 1.6 + len(methods) * max(0.5, 0.28 * len(found.ablations))
    figure = Figure(figsize=(max(4.4 * columns, 6.4), 0.8 + rows * height), layout="constrained")
    figure.suptitle(found.title, fontsize=11)
    axes = figure.subplots(rows, columns, sharey=True, squeeze=False).ravel()
    for panel, score in zip(axes, scores, strict=False):
        _panel(panel, found, score)
    for panel in axes[len(scores) :]:
        panel.set_axis_off()
    for number, panel in enumerate(axes[: len(scores)]):
        if number + columns >= len(scores):
            panel.set_xlabel("percent; right is better")
    axes[0].set_yticks(range(len(methods)), methods, fontsize=9)
    axes[0].set_ylim(len(methods) - 0.5, -0.5)
    handles, labels = axes[0].get_legend_handles_labels()
    unique = dict(zip(labels, handles, strict=True))
    figure.legend(
        unique.values(),
        unique.keys(),
        loc="outside lower center",
        ncols=len(unique),
        title="dot: a seed, upright bar: mean, line: 95 % interval",
        title_fontsize=8,
        fontsize=9,
    )
    save(figure, path)


def _panel(axes, found, score):
    names, seen = list(found.ablations), []
    for row, summaries in enumerate(found.summaries[score].values()):
        for number, name in enumerate(names):
            if name not in summaries:
                continue
            summary, color = summaries[name], colormaps["tab10"](number % 10)
            height = row + _ROOM * ((number + 0.5) / len(names) - 0.5)
            if not math.isnan(summary.low):
                axes.plot([summary.low, summary.high], [height] * 2, color=color, lw=2, alpha=0.6)
            values = list(summary.values.values())
            style = {"color": color, "ms": 5.5, "mec": "white", "mew": 0.7, "label": name}
            axes.plot(values, [height] * len(values), "o", **style)
            axes.plot(summary.mean, height, "|", color=color, markersize=16, mew=2.5)
            seen += values
    for row in range(1, len(found.methods)):
        axes.axhline(row - 0.5, color="lightgray", linewidth=0.8)
    span = np.ptp(seen) or 1.0
    low, high = axes.get_xlim()
    axes.set_xlim(max(low, min(seen) - 3 * span), min(high, max(seen) + 3 * span))
    axes.set_title(score, fontsize=10)
    axes.grid(alpha=0.3, axis="x")
