"""The picture of a grid."""

import math

from matplotlib.figure import Figure

from training.command.pictures import save
from training.finetune_glue.protocol import COLUMNS


def draw_grid(path, results, constants, names):
    """Draws the scores of all runs over the learning rate, a panel for each column.

    A dot is a run, the line goes through the medians, and the star is the best one. What a constant
    answer scores is in the title, and a dotted line where it is near. Runs that failed are crosses
    at the bottom.

    Args:
        path: PNG file to write.
        results: dictionary of column's name -> `ColumnResult`.
        constants: column's name -> score of a constant answer, percent.
        names: column's name -> what the score is, for the axis.
    """
    columns = min(len(results), 3)
    rows = math.ceil(len(results) / columns)
    figure = Figure(figsize=(4.2 * columns + 0.4, 3.4 * rows + 0.5), layout="constrained")
    for number, (name, result) in enumerate(results.items()):
        axes = figure.add_subplot(rows, columns, number + 1)
        _draw_column(axes, result, constants[name])
        axes.set_title(f"{COLUMNS[name].title} (constant answer: {constants[name]:.1f})")
        axes.set_ylabel(f"{names[name]} (%)")
        if number >= len(results) - columns:
            axes.set_xlabel("learning rate")
        if number == 0:
            axes.legend(fontsize="small")
    save(figure, path)


def _draw_column(axes, result, constant):
    rates = sorted(result.rates)
    numbers = range(len(rates))
    known = [
        (number, value)
        for number, rate in enumerate(rates)
        for value in result.rates[rate]
        if value is not None
    ]
    scores = [value for _, value in known] or [constant]
    lowest, highest = min(scores), max(scores)
    if 0 <= lowest - constant < max(highest - lowest, 3):
        lowest = constant
    room = max(0.15 * (highest - lowest), 0.5)
    axes.set_ylim(lowest - room, highest + room)
    failed = [
        (number, lowest - room / 2)
        for number, rate in enumerate(rates)
        if any(value is None for value in result.rates[rate])
    ]
    axes.axhline(constant, color="gray", linestyle=":", label="constant answer")
    if known:
        axes.scatter(*zip(*known, strict=True), color="C0", alpha=0.6, label="a seed", zorder=3)
    if failed:
        axes.scatter(*zip(*failed, strict=True), color="C3", marker="x", label="failed", zorder=3)
    medians = [(number, result.medians[rate]) for number, rate in zip(numbers, rates, strict=True)]
    medians = [(number, value) for number, value in medians if value is not None]
    if medians:
        axes.plot(
            *zip(*medians, strict=True), color="C0", marker="_", markersize=14, label="median"
        )
    if result.best_rate is not None:
        best = rates.index(result.best_rate)
        axes.plot(best, result.score, "*", color="C1", markersize=13, label="best", zorder=4)
        axes.annotate(
            f" {result.score:.1f}", (best, result.score), xytext=(8, 4), textcoords="offset points"
        )
    axes.set_xticks(list(numbers), [f"{rate:g}" for rate in rates])
    axes.set_xlim(-0.5, len(rates) - 0.5)
    axes.grid(alpha=0.3)
