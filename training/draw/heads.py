"""Heat maps of heads, with [CLS] apart from the words."""

import math

import numpy as np
from matplotlib import colormaps
from matplotlib.figure import Figure

from keras_tupe.analysis import remove_row_constants
from training.command.pictures import save

# Inches: a panel is the matrix of the words, strips of [CLS] above and left, a color bar right.
PANEL_WIDTH, PANEL_HEIGHT, TOP = 3.62, 3.22, 0.5
NARROWEST = 7.2  # the title needs it
LEFT, BELOW, MATRIX, STRIP, GAP, BAR = 0.72, 0.55, 2.0, 0.11, 0.07, 0.09


def draw_logits(path, matrices, titles, title):
    """Draws position logits without what rows share, which softmax ignores.

    The words are drawn as `keras_tupe.analysis.remove_row_constants` says, the column of [CLS] is
    moved with them, and its row is drawn without its mean over the words. Where words do not see
    all others each row is drawn without its mean over those that it sees.

    Args:
        path: PNG file to write.
        matrices: logits `(heads, length, length)`, NaN where a query does not see a key, [CLS]
            first.
        titles: list of texts above the heads.
        title: text above the picture.
    """
    seen = np.isfinite(matrices[:, :, 1:])
    total = np.where(seen, matrices[:, :, 1:], 0).sum(axis=-1, keepdims=True)
    moved = matrices - total / np.maximum(seen.sum(axis=-1, keepdims=True), 1)
    if seen.all():
        words = remove_row_constants(matrices[:, 1:, 1:])
        moved[:, 1:] += (words - moved[:, 1:, 1:]).mean(axis=-1, keepdims=True)
    _draw_panels(path, moved, titles, title, _positions(matrices.shape[-1]), signed=True)


def draw_scores(path, matrices, titles, title, tokens=None):
    """Draws attention scores, as `draw_logits`; `tokens` are strings that name the positions."""
    length = matrices.shape[-1]
    ticks = _positions(length) if tokens is None else (list(range(1, length)), tokens[1:])
    _draw_panels(path, matrices, titles, title, ticks, signed=False)


def _positions(length):
    """Returns the positions of the words to label, and the labels."""
    sizes = (size * 10**power for power in range(9) for size in (1, 2, 4, 5, 8))
    step = next(size for size in sizes if length <= 6 * size)
    positions = [1, *range(step, length, step)] if step > 1 else list(range(1, length))
    return positions, [str(position) for position in positions]


def _draw_panels(path, matrices, titles, title, ticks, signed):
    columns = min(len(matrices), 4)
    rows = math.ceil(len(matrices) / columns)
    width, height = max(PANEL_WIDTH * columns, NARROWEST), PANEL_HEIGHT * rows + TOP
    figure = Figure(figsize=(width, height))
    figure.text(0.5, 1 - 0.1 / height, title, ha="center", va="top", fontsize=10)
    for head, (matrix, text) in enumerate(zip(matrices, titles, strict=True)):
        left = PANEL_WIDTH * (head % columns) + (width - PANEL_WIDTH * columns) / 2
        below = PANEL_HEIGHT * (rows - 1 - head // columns)

        def axes(x, y, w, h, left=left, below=below):
            box = ((left + x) / width, (below + y) / height, w / width, h / height)
            return figure.add_axes(box)

        _draw_panel(axes, matrix, text, ticks, signed)
    save(figure, path)


def _draw_panel(axes, matrix, text, ticks, signed):
    colors = colormaps["RdBu_r" if signed else "viridis"].with_extremes(bad="lightgray")
    words, cls = matrix[1:, 1:], np.concatenate([matrix[0], matrix[1:, 0]])
    limit, cls_limit = _limit(words, 0.995), _limit(cls, 1)
    count = len(words)

    def show(area, values, top):
        return area.imshow(values, cmap=colors, vmin=-top if signed else 0, vmax=top, aspect="auto")

    far = STRIP + GAP
    main = axes(LEFT + far, BELOW, MATRIX, MATRIX)
    image = show(main, words, limit)
    column = axes(LEFT, BELOW, STRIP, MATRIX)
    show(column, matrix[1:, :1], cls_limit)
    row = axes(LEFT + far, BELOW + MATRIX + GAP, MATRIX, STRIP)
    show(row, matrix[:1, 1:], cls_limit)
    corner = axes(LEFT, BELOW + MATRIX + GAP, STRIP, STRIP)
    show(corner, matrix[:1, :1], cls_limit)

    positions, labels = ticks
    size = 8 if len(positions) <= 12 else max(3.5, 8 * 16 / max(count, 16))
    turned = 0 if max(map(len, labels)) <= 3 else 90
    for area in (main, row, corner, column):
        area.set_xticks([])
        area.set_yticks([])
    main.set_xticks(
        [position - 1 for position in positions], labels, fontsize=size, rotation=turned
    )
    column.set_yticks([position - 1 for position in positions], labels, fontsize=size)
    corner.set_yticks([0], ["[CLS]"], fontsize=7)
    column.set_xticks([0], ["[CLS]"], fontsize=7, rotation=90)
    if not turned:
        main.set_xlabel("key position", fontsize=8, labelpad=2)
        column.set_ylabel("query position", fontsize=8, labelpad=2)
    bar = main.figure.colorbar(image, cax=axes(LEFT + far + MATRIX + GAP, BELOW, BAR, MATRIX))
    bar.ax.tick_params(labelsize=7)
    bar.ax.yaxis.set_offset_position("left")  # else a power of ten lies over the strip of [CLS]
    bar.ax.yaxis.get_offset_text().set_fontsize(7)
    note = f"[CLS]: {'+-' if signed else '0 to '}{cls_limit:.2g}"
    row.set_title(f"{text}\n{note}", fontsize=8.5, pad=4)


def _limit(values, quantile):
    """Returns the largest size that the colors show; a few entries may lie outside."""
    values = np.abs(values[np.isfinite(values)])
    return float(np.quantile(values, quantile) or values.max() or 1.0) if values.size else 1.0
