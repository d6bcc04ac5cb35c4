"""The forms of a report that tasks share: a table of seeds, panels of points with intervals."""

import dataclasses
import math
import statistics

from training.command.report import table


def table_of_seeds(seeds, columns, **others):
    """Returns a table with a row for each seed, their mean, and others to compare with.

    Args:
        seeds: the seeds.
        columns: heading -> scores of the seeds, percent.
        **others: name of a row (`_` is a space) -> its scores.
    """
    rows = [[f"seed {seed}", *row] for seed, *row in zip(seeds, *columns.values(), strict=True)]
    if len(rows) > 1:
        rows.append(["mean", *map(statistics.fmean, columns.values())])
    rows += [[name.replace("_", " "), *scores] for name, scores in others.items()]
    texts = [[name, *(f"{score:.2f}" for score in scores)] for name, *scores in rows]
    return table(["run", *columns], texts)


@dataclasses.dataclass(frozen=True)
class Series:
    """Points of a panel."""

    label: str
    points: list  # of (place on the axis, value, low, high); the ends may be None
    style: dict  # arguments of `Axes.errorbar`


@dataclasses.dataclass(frozen=True)
class Panel:
    """A panel of a picture."""

    title: str
    x: str
    y: str
    ticks: list  # labels of the places 0, 1, ... of the horizontal axis
    series: list
    lines: list  # of (label, value, color, style)
    ends: tuple  # of the vertical axis; None for what fits


def draw_panels(path, panels, title=None, size=(4.4, 3.6)):
    """Draws `Panel`s, three in a row at most, with the legend in the first; `size` in inches."""
    from matplotlib.figure import Figure

    from training.command.report import save

    columns = min(len(panels), 3)
    rows = math.ceil(len(panels) / columns)
    figure = Figure((size[0] * columns + 0.4, size[1] * rows + 0.5), layout="constrained")
    figure.suptitle(title)
    for number, panel in enumerate(panels, 1):
        axes = figure.add_subplot(rows, columns, number)
        for series in panel.series:
            _draw(axes, series)
        for label, value, color, style in panel.lines:
            axes.axhline(value, color=color, linestyle=style, linewidth=1, label=label)
        axes.set(title=panel.title, xlabel=panel.x, ylabel=panel.y, ylim=panel.ends)
        axes.set_xticks(range(len(panel.ticks)), panel.ticks, fontsize=8)
        axes.set_xlim(-0.5, len(panel.ticks) - 0.5)
        axes.grid(alpha=0.3)
        if number == 1:
            axes.legend(fontsize="small")
    save(figure, path)


def _draw(axes, series):
    if series.points:
        x, y, *ends = zip(*series.points, strict=True)
        reach = [
            [0 if end is None else abs(end - value) for value, end in zip(y, one, strict=True)]
            for one in ends
        ]
        is_sure = not any(map(any, reach))
        axes.errorbar(x, y, None if is_sure else reach, label=series.label, **series.style)
