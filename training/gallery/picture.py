"""The picture of the gallery: the heads of each method, before and after training."""

import dataclasses

import numpy as np
from matplotlib import colormaps
from matplotlib.figure import Figure

from keras_tupe.analysis import remove_row_constants
from training.command.pictures import save

PANEL, NAME, GAP, TOP = 0.82, 1.75, 0.06, 0.62  # inches


@dataclasses.dataclass(frozen=True)
class Heads:
    """The heads of the first block of one encoder.

    Attributes:
        kind: `"logits"`, made by positions alone, or `"scores"`, averaged over texts.
        matrices: `(heads, length, length)`, [CLS] first.
        patterns: name of the pattern of each head.
    """

    kind: str
    matrices: np.ndarray
    patterns: list


@dataclasses.dataclass(frozen=True)
class Entry:
    """One method of the gallery.

    Attributes:
        name: the method.
        before, after: its `Heads` at initialization and after training.
        loss: held-out masked-token loss after training, in nats.
    """

    name: str
    before: Heads
    after: Heads
    loss: float


def draw_gallery(path, entries, title):
    """Draws one line per method: its heads at initialization, then after training.

    Position logits are drawn without what rows share, red for above, blue for below; attention
    scores from dark to light. Each panel has colors of its own, and lines set [CLS] apart.

    Args:
        path: PNG file to write.
        entries: list of `Entry`.
        title: text above the picture.
    """
    heads = len(entries[0].before.matrices)
    width = NAME + 2 * heads * (PANEL + GAP) + 4 * GAP
    height = TOP + len(entries) * (PANEL + GAP) + 2 * GAP
    figure = Figure(figsize=(width, height))
    figure.text(0.5, 1 - 0.06 / height, title, ha="center", va="top", fontsize=10)
    for line, entry in enumerate(entries):
        below = height - TOP - (line + 1) * (PANEL + GAP)
        text = f"{entry.name}\nloss {entry.loss:.2f}"
        figure.text(0.08 / width, (below + PANEL / 2) / height, text, va="center", fontsize=9)
        for side, (state, found) in enumerate(
            [("at initialization", entry.before), ("after training", entry.after)]
        ):
            left = NAME + side * (heads * (PANEL + GAP) + 3 * GAP)
            if line == 0:
                place = ((left + heads * (PANEL + GAP) / 2) / width, 1 - 0.42 / height)
                figure.text(*place, state, ha="center", va="center", fontsize=9)
            for head in range(heads):
                x = left + head * (PANEL + GAP)
                box = (x / width, below / height, PANEL / width, PANEL / height)
                _draw_panel(figure.add_axes(box), found.kind, found.matrices[head])
    save(figure, path)


def _draw_panel(axes, kind, matrix):
    if kind == "logits":
        drawn = matrix - matrix[:, 1:].mean(axis=1, keepdims=True)
        words = remove_row_constants(matrix[None, 1:, 1:])[0]
        drawn[1:] += (words - drawn[1:, 1:]).mean(axis=1, keepdims=True)
        limit = np.quantile(np.abs(drawn[1:, 1:]), 0.995) or 1.0
        axes.imshow(drawn, cmap=colormaps["RdBu_r"], vmin=-limit, vmax=limit)
    else:
        limit = np.nanquantile(matrix[1:, 1:], 0.995) or 1.0
        axes.imshow(matrix, cmap=colormaps["viridis"], vmin=0, vmax=limit)
    color = "black" if kind == "logits" else "white"
    axes.axhline(0.5, color=color, linewidth=0.5)
    axes.axvline(0.5, color=color, linewidth=0.5)
    axes.set_xticks([])
    axes.set_yticks([])
