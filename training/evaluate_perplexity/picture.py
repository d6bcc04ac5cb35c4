"""Loss against position, drawn."""

import numpy as np
from matplotlib.figure import Figure

from training.command.pictures import save


def draw_positions(path, runs, trained_length=None, styles=None):
    """Draws perplexity against the number of tokens that a prediction is made from.

    Args:
        path: PNG file to write.
        runs: dictionary of label -> list of what `summary` returned, one for each seed. A line is
            the mean of the seeds' losses, its band from the lowest to the highest.
        trained_length: tokens of the rows of training, which a line marks; `None` if unknown.
        styles: dictionary of label -> keywords of `plot`. Defaults to a color each.
    """
    figure = Figure(figsize=(8.5, 4.8), layout="constrained")
    axes = figure.add_subplot()
    for number, (label, results) in enumerate(runs.items()):
        style = {"color": f"C{number % 10}", **(styles or {}).get(label, {})}
        middles, losses = curves(results)
        values = np.exp(losses)
        axes.plot(middles, np.exp(losses.mean(axis=0)), "o", markersize=4, **_but_line(style))
        mean = np.exp(losses.mean(axis=0))
        axes.plot(middles, mean, label=f"{label}: {mean[-1]:.3g} at the end", **style)
        if len(results) > 1:
            low, high = values.min(axis=0), values.max(axis=0)
            axes.fill_between(middles, low, high, color=style["color"], alpha=0.15, lw=0)
    if trained_length is not None:
        axes.axvline(trained_length, color="black", linestyle="--", linewidth=1)
        words = {"ha": "right", "va": "top", "rotation": 90}
        axes.text(trained_length, 0.99, "rows of training ", **words, **_inside(axes))
    axes.set_yscale("log")
    for axis in (axes.yaxis.set_major_formatter, axes.yaxis.set_minor_formatter):
        axis(lambda value, _: f"{value:g}")
    axes.set_xlabel("tokens that a prediction is made from (middle of a bin)")
    axes.set_ylabel("perplexity per token (logarithmic)")
    axes.set_title("held-out perplexity by position")
    axes.grid(alpha=0.3, which="both")
    axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.01, 0.5))
    save(figure, path)


def curves(results):
    """Returns the middles of the bins that have tokens, and the losses `(seeds, bins)`."""
    used = [n for n, one in enumerate(results[0]["bins"]) if one["loss"] is not None]
    bins = [[result["bins"][number] for number in used] for result in results]
    middles = [(one["first"] + one["last"]) / 2 for one in bins[0]]
    return np.array(middles), np.array([[one["loss"] for one in row] for row in bins])


def _but_line(style):
    return {"color": style["color"], "linestyle": "none"}


def _inside(axes):
    return {"transform": axes.get_xaxis_transform(), "fontsize": 8}
