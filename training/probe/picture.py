"""Scores of probes, drawn: methods by tasks, a panel for each length."""

import numpy as np
from matplotlib.figure import Figure

from training.command.pictures import save


def draw_scores(path, results):
    """Draws a heat map of the mean scores, one for each length.

    Cells with a hatch cannot be 100 % by construction.

    Args:
        path: PNG file to write.
        results: content of `probe.json`.
    """
    methods, tasks = results["methods"], list(results["tasks"])
    lengths = list(map(str, results["settings"]["lengths"]))
    size = (1.6 + 0.62 * len(tasks) * len(lengths), 2.4 + 0.34 * len(methods))
    figure = Figure(figsize=size, layout="constrained")
    panels = figure.subplots(1, len(lengths), sharey=True, squeeze=False)[0]
    for axes, length in zip(panels, lengths, strict=True):
        means = np.array(
            [
                [method["scores"][task][length]["mean"] for task in tasks]
                for method in methods.values()
            ]
        )
        image = axes.imshow(means, cmap="viridis", vmin=0, vmax=100, aspect="auto")
        for (row, column), mean in np.ndenumerate(means):
            color = "black" if mean > 60 else "white"
            axes.text(column, row, f"{mean:.0f}", ha="center", va="center", color=color, size=8)
        for row, method in enumerate(methods.values()):
            _hatch(axes, row, [results["ceilings"][method["order"]][x][length] for x in tasks])
        axes.set_xticks(range(len(tasks)), [task.replace("_", " ") for task in tasks], rotation=90)
        axes.set_yticks(range(len(methods)), list(methods))
        trained = int(length) == results["settings"]["length"]
        axes.set_title(f"{length} tokens" + (", as in training" if trained else ""), size=10)
    figure.colorbar(image, ax=panels, label="right answers (%)")
    figure.suptitle("What an encoder can learn about positions; hatched: not all, by construction")
    save(figure, path)


def _hatch(axes, row, bounds):
    from matplotlib.patches import Rectangle

    for column, bound in enumerate(bounds):
        if bound < 100:
            corner = (column - 0.5, row - 0.5)
            style = {"fill": False, "hatch": "//", "edgecolor": "0.6", "alpha": 0.5, "lw": 0}
            axes.add_patch(Rectangle(corner, 1, 1, **style))
