"""Scores of probes, drawn: methods by tasks, a panel for each length."""

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from training.command.report import save

_HATCH = {"fill": False, "hatch": "//", "edgecolor": "0.6", "alpha": 0.5, "lw": 0}


def draw_scores(path, methods, bounds, trained_length):
    """Draws a heat map of the mean scores, one for each length.

    Cells with a hatch cannot be 100 % by construction.

    Args:
        path: PNG file to write.
        methods: dictionary: label -> dictionary with `order` and `scores`.
        bounds: dictionary: order -> (task, length) -> the most that is possible.
        trained_length: of the rows of training.
    """
    cells = list(next(iter(methods.values()))["scores"])
    tasks, lengths = (list(dict.fromkeys(names)) for names in zip(*cells, strict=True))
    size = (1.6 + 0.62 * len(tasks) * len(lengths), 2.4 + 0.34 * len(methods))
    figure = Figure(figsize=size, layout="constrained")
    panels = figure.subplots(1, len(lengths), sharey=True, squeeze=False)[0]
    for axes, length in zip(panels, lengths, strict=True):
        means = [[one["scores"][x, length].mean for x in tasks] for one in methods.values()]
        image = axes.imshow(means, cmap="viridis", vmin=0, vmax=100, aspect="auto")
        orders = [method["order"] for method in methods.values()]
        for (row, column), mean in np.ndenumerate(means):
            color = "black" if mean > 60 else "white"
            axes.text(column, row, f"{mean:.0f}", ha="center", va="center", color=color, size=8)
            if bounds[orders[row]][tasks[column], length] < 100:
                axes.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, **_HATCH))
        axes.set_xticks(range(len(tasks)), [task.replace("_", " ") for task in tasks], rotation=90)
        axes.set_yticks(range(len(methods)), list(methods))
        trained = length == trained_length
        axes.set_title(f"{length} tokens" + (", as in training" if trained else ""), size=10)
    figure.colorbar(image, ax=panels, label="right answers (%)")
    figure.suptitle("What an encoder can learn about positions; hatched: not all, by construction")
    save(figure, path)
