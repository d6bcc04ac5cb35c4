"""A table of vectors by distance as it is, a color per number: Fig. 4 of Huang et al. 2020."""

import numpy as np
from matplotlib.figure import Figure

from training.command.pictures import save

FARTHEST = 50  # distances drawn to each side, as in the figure


def draw_channels(path, values, title):
    """Draws the vectors of a head by distance: channels from left to right, distances upwards.

    Args:
        path: PNG file to write.
        values: array `(2k + 1, width)`; row r is the vector of distance r - k.
        title: text above the picture.
    """
    k = len(values) // 2
    shown = min(k, FARTHEST)
    rows = values[k - shown : k + shown + 1]
    center = 1.0 if np.median(rows) > 0.5 else 0.0  # factors begin at 1, what is added near 0
    limit = float(np.abs(rows - center).max()) or 1.0
    figure = Figure(figsize=(6.4, 5.2), layout="constrained")
    figure.suptitle(title, fontsize=10)
    axes = figure.add_subplot()
    image = axes.imshow(
        rows,
        cmap="RdBu_r",
        vmin=center - limit,
        vmax=center + limit,
        aspect="auto",
        origin="lower",
        interpolation="nearest",
        extent=(-0.5, rows.shape[1] - 0.5, -shown - 0.5, shown + 0.5),
    )
    axes.set_xlabel("channel", fontsize=9)
    axes.set_ylabel("distance, key - query position", fontsize=9)
    axes.set_xticks(np.unique(np.linspace(0, rows.shape[1] - 1, 9).astype(int)))
    axes.tick_params(labelsize=8)
    figure.colorbar(image, ax=axes).ax.tick_params(labelsize=8)
    save(figure, path)
