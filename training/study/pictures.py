"""Kinds of pictures that studies draw: panels of scores."""

import math

import numpy as np
from matplotlib import colormaps
from matplotlib.figure import Figure

from training.command.report import save

COLUMNS = 3  # of panels
_DASHES = ("-", (0, (5, 1.5)), (0, (1.5, 1.2)))
_ROOM = 0.7  # of a row for its dots


def styles_of(names):
    """Returns the color and the dash of each name in all pictures; twenty look different."""
    return {
        name: {
            "color": colormaps["tab10"](number % 10),
            "linestyle": _DASHES[number // 10 % len(_DASHES)],
        }
        for number, name in enumerate(names)
    }


def panels(count, size, title, **options):
    """Returns a figure and its first `count` axes, at most three in a row.

    Args:
        count: number of panels.
        size: width and height of one, inches.
        title: of the figure.
        **options: of `Figure.subplots`.
    """
    columns = min(COLUMNS, count)
    rows = math.ceil(count / columns)
    figure = Figure(
        figsize=(max(size[0] * columns, 6.4), 0.8 + rows * size[1]), layout="constrained"
    )
    figure.suptitle(title, fontsize=11)
    axes = figure.subplots(rows, columns, squeeze=False, **options).ravel()
    for panel in axes[count:]:
        panel.set_axis_off()
    return figure, axes[:count]


def draw_differences(path, scores, title="Scores of all runs", unit="score"):
    """Draws the scores of all runs: a panel for each score, a line for each name.

    A dot is a seed, the upright bar the mean over seeds, the line its 95 % interval.

    Args:
        path: PNG file to write.
        scores: dictionary: score -> name -> `Summary`.
        title: of the picture.
        unit: of all scores.
    """
    draw_rows(
        path,
        {
            score: {name: {"": one} for name, one in found.items()}
            for score, found in scores.items()
        },
        title,
        unit,
    )


def draw_rows(path, scores, title, unit):
    """Draws a panel for each score, a line for each row, a color for each name in it.

    A dot is a seed, the upright bar the mean over seeds, the line its 95 % interval. One
    that is wider than three times what the seeds of a panel span is cut at its edge.

    Args:
        path: PNG file to write.
        scores: dictionary: score -> row -> name -> `Summary`.
        title: of the picture.
        unit: of all scores.
    """
    rows = list(dict.fromkeys(row for found in scores.values() for row in found))
    names = [name for found in scores.values() for one in found.values() for name in one]
    names = list(dict.fromkeys(names))
    height = 1.2 + len(rows) * max(0.4, 0.28 * len(names))
    figure, axes = panels(len(scores), (4.4, height), title, sharey=True)
    for number, (panel, score) in enumerate(zip(axes, scores, strict=True)):
        _panel(panel, scores[score], score, rows, names)
        if number + COLUMNS >= len(scores):
            panel.set_xlabel(unit)
    axes[0].set_yticks(range(len(rows)), rows, fontsize=9)
    axes[0].set_ylim(len(rows) - 0.5, -0.5)
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


def _panel(axes, found, score, rows, names):
    seen = []
    for row, name in ((row, name) for row in rows for name in names):
        if name not in found.get(row, ()):
            continue
        summary, number = found[row][name], names.index(name)
        color = colormaps["tab10"](number % 10)
        height = rows.index(row) + _ROOM * ((number + 0.5) / len(names) - 0.5)
        if not math.isnan(summary.low):
            axes.plot([summary.low, summary.high], [height] * 2, color=color, lw=2, alpha=0.6)
        values = list(summary.values.values())
        style = {"color": color, "ms": 5.5, "mec": "white", "mew": 0.7, "label": name or None}
        axes.plot(values, [height] * len(values), "o", **style)
        axes.plot(summary.mean, height, "|", color=color, markersize=16, mew=2.5)
        seen += values
    for row in range(1, len(rows)):
        axes.axhline(row - 0.5, color="lightgray", linewidth=0.8)
    span = np.ptp(seen) or 1.0
    low, high = axes.get_xlim()
    axes.set_xlim(max(low, min(seen) - 3 * span), min(high, max(seen) + 3 * span))
    axes.set_title(score, fontsize=10)
    axes.grid(alpha=0.3, axis="x")
