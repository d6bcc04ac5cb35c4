"""The picture of an ablation's tasks: a panel for each score, a line for each method."""

import math

from matplotlib.figure import Figure

from training.ablate.collect import LOSS
from training.ablate.picture import styles_of
from training.command.pictures import save

_COLUMNS = 3


def draw_tasks(path, ablation):
    """Draws the scores of all models in all tasks.

    Methods stand in the order of their held-out loss in every panel, the lowest on top: if what
    helps pre-training helped a task too, the dots would lean that way. A dot is a seed of
    pre-training, the bar is the mean of the seeds, the line is the mean of the baseline.

    Args:
        path: PNG file to write.
        ablation: an `Ablation` with scores of tasks.
    """
    styles = styles_of(ablation)
    losses, scores = ablation.summaries[LOSS], ablation.task_names
    order = sorted(ablation.methods, key=lambda name: losses[name].mean)
    columns = min(_COLUMNS, len(scores))
    rows = math.ceil(len(scores) / columns)
    size = (4.4 * columns, rows * max(2.6, 1.2 + 0.3 * len(order)))
    figure = Figure(figsize=size, layout="constrained")
    figure.suptitle("Scores in tasks; methods by held-out loss, the lowest on top", fontsize=11)
    axes = figure.subplots(rows, columns, sharey=True, squeeze=False).ravel()
    for place, score in zip(axes, scores, strict=False):
        _panel(place, ablation, score, order, styles)
    for place in axes[len(scores) :]:
        place.set_axis_off()
    for number, place in enumerate(axes[: len(scores)]):
        if number + columns >= len(scores):
            place.set_xlabel(f"percent. Dot: a seed, bar: mean,\nline: {ablation.baseline}")
    axes[0].set_yticks(range(len(order)), order, fontsize=9)
    axes[0].set_ylim(len(order) - 0.5, -0.5)
    save(figure, path)


def _panel(axes, ablation, score, order, styles):
    found = ablation.summaries[score]
    axes.set_title(score, fontsize=10)
    axes.grid(alpha=0.3, axis="x")
    if ablation.baseline in found:
        axes.axvline(found[ablation.baseline].mean, color="black", linewidth=1)
    for place, name in enumerate(order):
        if name not in found:
            continue
        color, values = styles[name]["color"], list(found[name].values.values())
        axes.plot(found[name].mean, place, "|", color=color, markersize=16, mew=2.5)
        axes.plot(values, [place] * len(values), "o", color=color, markersize=5, mec="white")
