"""The pictures of the gallery: the heads of a method, before and after training."""

import dataclasses
import math

import numpy as np
from matplotlib import colormaps
from matplotlib.figure import Figure

from keras_tupe.analysis import remove_row_constants
from training.command.pictures import save

# Inches and points: 790 pixels wide, and the titles can be read on a telephone too.
PANEL, GAP, TITLE, FONT = 1.7, 0.08, 0.45, 17
COLUMNS = 4
WORDS = {"logits": "position logits", "scores": "attention scores"}


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


def draw_entry(path, entry, steps):
    """Draws the heads of one method: at initialization above, after training below.

    Position logits are drawn without what rows share, red for above, blue for below; attention
    scores from dark to light. Each panel has colors of its own, and lines set [CLS] apart.

    Args:
        path: PNG file to write.
        entry: an `Entry`.
        steps: number of training steps between the two.
    """
    states = [
        (f"{entry.name} at initialization: {WORDS[entry.before.kind]}", entry.before),
        (f"after {steps:,} steps: {WORDS[entry.after.kind]}", entry.after),
    ]
    lines = math.ceil(len(entry.before.matrices) / COLUMNS)
    block = TITLE + lines * (PANEL + GAP)
    width, height = COLUMNS * (PANEL + GAP) + GAP, len(states) * block
    figure = Figure(figsize=(width, height))
    for number, (title, heads) in enumerate(states):
        top = height - number * block
        place = (GAP / width, (top - TITLE + 0.1) / height)
        figure.text(*place, title, va="bottom", fontsize=FONT)
        for head, matrix in enumerate(heads.matrices):
            line, column = divmod(head, COLUMNS)
            x, y = GAP + column * (PANEL + GAP), top - TITLE - line * (PANEL + GAP) - PANEL
            box = (x / width, y / height, PANEL / width, PANEL / height)
            _draw_panel(figure.add_axes(box), heads.kind, matrix)
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
