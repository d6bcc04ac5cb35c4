"""Cosines of pairs against people's scores, drawn."""

import numpy as np
from matplotlib.figure import Figure

from training.command.pictures import save

_BINS = 10


def draw_similarities(path, labels, panels):
    """Draws the cosine of each pair against its score, with the median of each part of the scale.

    Args:
        path: PNG file to write.
        labels: people's scores, from 0 to 5, `(pairs,)`.
        panels: dictionary of title -> (cosines `(pairs,)`, dictionary of `spearman`, `low` and
            `high`), one beside the other.
    """
    figure = Figure(figsize=(5.2 * len(panels), 4.6), layout="constrained")
    all_axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for number, (axes, (title, (cosines, score))) in enumerate(
        zip(all_axes, panels.items(), strict=True)
    ):
        axes.scatter(labels, cosines, s=6, alpha=0.25, color=f"C{number}", linewidths=0)
        middles, medians = _medians(labels, cosines)
        axes.plot(middles, medians, "o-", color="black", markersize=4, label="median")
        low, high = (100 * score[name] for name in ("low", "high"))
        axes.set_title(
            f"{title}\nSpearman x 100: {100 * score['spearman']:.1f} ({low:.1f} to {high:.1f})"
        )
        axes.set_xlabel("similarity by people (0 to 5)")
        axes.grid(alpha=0.3)
        axes.legend(loc="lower right")
    all_axes[0].set_ylabel("cosine of the two vectors")
    figure.suptitle(f"STS-B: {len(labels):,} pairs of sentences, 95 % intervals")
    save(figure, path)


def _medians(labels, values):
    """Returns the middles of the parts of the scale that have pairs, and medians of values."""
    part = np.clip((np.asarray(labels) / 5 * _BINS).astype(int), 0, _BINS - 1)
    used = np.unique(part)
    return (used + 0.5) * 5 / _BINS, [np.median(values[part == one]) for one in used]
