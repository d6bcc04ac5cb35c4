"""Accuracies on minimal pairs, drawn."""

import numpy as np
from matplotlib.figure import Figure

from training.command.pictures import save

CHANCE = 0.5


def draw_phenomena(path, runs):
    """Draws accuracy per phenomenon, with intervals, and the line of a blind choice.

    The phenomena are in the order of their mean over the runs, the easiest above; all pairs are in
    a line of their own, below.

    Args:
        path: PNG file to write.
        runs: dictionary of label -> what `summary` returned, a color each.
    """
    accuracies = {}
    for results in runs.values():
        for name, entry in results["phenomena"].items():
            accuracies.setdefault(name, []).append(entry["accuracy"])
    names = sorted(accuracies, key=lambda name: np.mean(accuracies[name]))
    figure = Figure(
        figsize=(8, 1.6 + (0.22 + 0.14 * len(runs)) * (len(names) + 1)), layout="constrained"
    )
    axes = figure.add_subplot()
    for number, (label, results) in enumerate(runs.items()):
        shift = 0.5 * (0.5 - (number + 0.5) / len(runs))  # the first run above
        entries = {-1: results["overall"]}
        found = results["phenomena"]
        entries |= {row: found[name] for row, name in enumerate(names) if name in found}
        values = [100 * entry["accuracy"] for entry in entries.values()]
        ends = np.array([[100 * e["low"], 100 * e["high"]] for e in entries.values()]).T
        axes.errorbar(
            values,
            [row + shift for row in entries],
            xerr=np.abs(ends - values),
            fmt="o",
            color=f"C{number % 10}",
            markersize=4,
            capsize=2,
            label=f"{label}: {100 * results['overall']['accuracy']:.1f} %",
        )
    axes.axvline(100 * CHANCE, color="gray", linestyle="--", label="a blind choice")
    axes.axhline(-0.5, color="black", linewidth=0.8)
    pairs = next(iter(runs.values()))["overall"]["pairs"]
    labels = [f"all {pairs:,} pairs", *(name.replace("_", " ") for name in names)]
    axes.set_yticks(range(-1, len(names)), labels)
    axes.set_ylim(-1.5, len(names) - 0.5)
    axes.set_xlim(0, 100)
    axes.set_xlabel("pairs in which the good sentence is more likely (%), with 95 % intervals")
    axes.set_title("BLiMP: minimal pairs by phenomenon")
    axes.grid(axis="x", alpha=0.3)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=2)
    save(figure, path)
