"""Tables that are indexed by distance: as curves, and number by number."""

import numpy as np
from matplotlib import colormaps
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from training.command.pictures import save

MOST_LABELS = 12
FARTHEST = 32  # distances drawn to each side of curves; tables often have hundreds
FARTHEST_CHANNELS = 50  # and of channels, as in Fig. 4 of Huang et al. 2020


def draw_tables(path, tables, title):
    """Draws the rows of distance tables around distance 0, a line per head.

    A table of scalars is drawn as it is; of vectors the mean of their components and their norm.
    What an untied [CLS] has in place of a distance stands apart, right of the curves.

    Args:
        path: PNG file to write.
        tables: dictionary of name -> `keras_tupe.analysis.DistanceTable`.
        title: text above the picture.
    """
    views = {name: _views(table) for name, table in tables.items()}
    columns = max(map(len, views.values()))
    has_cls = any(table.cls is not None for table in tables.values())
    figure = Figure(figsize=(max(5.2 * columns, 6), 2.5 * len(tables) + 0.5), layout="constrained")
    figure.suptitle(title, fontsize=11)
    grid = figure.add_gridspec(
        len(tables), columns * (1 + has_cls), width_ratios=([7, 1] if has_cls else [1]) * columns
    )
    for line, (name, view) in enumerate(views.items()):
        for column, (text, values, cls) in enumerate(view):
            axes = figure.add_subplot(grid[line, column * (1 + has_cls)])
            _draw_curves(axes, values)
            axes.set_title(f"{name}: {text}" if text else name, fontsize=9)
            if line == len(views) - 1:
                axes.set_xlabel("distance, key - query position", fontsize=8)
            if cls is not None:
                apart = figure.add_subplot(grid[line, column * 2 + 1], sharey=axes)
                _draw_cls(apart, cls)
    lines, labels = figure.axes[0].get_legend_handles_labels()
    if 1 < len(lines) <= MOST_LABELS:
        figure.legend(lines, labels, loc="outside lower center", ncols=6, fontsize=7)
    save(figure, path)


def _views(table):
    """Returns (text, values `(heads, 2k + 1)`, [CLS] `(2, heads)` or `None`) to be drawn."""
    width = table.values.shape[-1]
    cls = table.cls
    if width == 1:
        return [("", table.values[..., 0], None if cls is None else cls[..., 0])]
    parts = {
        f"mean of {width} components": lambda rows: rows.mean(axis=-1),
        "norm": lambda rows: np.linalg.norm(rows, axis=-1),
    }
    return [
        (text, part(table.values), None if cls is None else part(cls))
        for text, part in parts.items()
    ]


def _colors(count):
    return [colormaps["viridis"](share) for share in np.linspace(0, 0.92, count)]


def _draw_curves(axes, values):
    k = values.shape[1] // 2
    shown = min(k, FARTHEST)
    distances = np.arange(-shown, shown + 1)
    for head, (row, color) in enumerate(zip(values, _colors(len(values)), strict=True)):
        label = f"head {head}" if len(values) > 1 else "all heads"
        axes.plot(distances, row[k - shown : k + shown + 1], color=color, label=label, linewidth=1)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.axvline(0, color="gray", linewidth=0.6)
    axes.tick_params(labelsize=7)
    axes.grid(alpha=0.3)


def _draw_cls(axes, cls):
    for head, color in enumerate(_colors(cls.shape[1])):
        axes.plot([0, 1], cls[:, head], "D", color=color, markersize=4)
    axes.set_xlim(-0.6, 1.6)
    axes.set_xticks([0, 1], ["row", "col."], fontsize=7)
    axes.tick_params(axis="y", labelleft=False)
    axes.set_title("[CLS]", fontsize=8)
    axes.grid(alpha=0.3)


def draw_channels(path, values, title):
    """Draws the vectors of a head by distance: channels from left to right, distances upwards.

    A color is a number of the table, as in Fig. 4 of Huang et al. 2020.

    Args:
        path: PNG file to write.
        values: array `(2k + 1, width)`; row r is the vector of distance r - k.
        title: text above the picture.
    """
    k = len(values) // 2
    shown = min(k, FARTHEST_CHANNELS)
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
