"""The picture of an experiment: differences to the baseline, the paper's left, ours right."""

import math

from matplotlib.figure import Figure

from training.command.report import save
from training.studies.ablation.results import LOSS

_THEIRS, _OURS, _BASE = "#7a7a7a", "#1f77b4", "#d9d9d9"
_ROW = 0.34  # inches


def draw(path, plan, results):
    """Draws differences to the baseline, each panel with its own scale and heading.

    Args:
        path: PNG file to write.
        plan: the `Plan` that was carried out.
        results: its `Results`.
    """
    tables = plan.experiment.tables
    found = results.summaries[results.headline]
    rows = max([len(found), *(len(one.rows) for one in tables)])
    width = 4.6 * (len(tables) + 1)
    figure = Figure(figsize=(width, 1.9 + _ROW * rows), layout="constrained")
    others = ". Other models, other axes." if tables else ""
    figure.suptitle(f"{plan.experiment.name}: differences to the baseline{others}")
    panels = figure.subplots(1, len(tables) + 1, squeeze=False)[0]
    for axes, one in zip(panels, tables, strict=False):
        _theirs(axes, one)
    _ours(panels[-1], plan, results, found)
    save(figure, path)


def _theirs(axes, one):
    base = one.value(one.baseline, one.headline)
    names = [row.name for row in one.rows]
    values = [one.value(name, one.headline) - base for name in names]
    labels = ["baseline" if name == one.baseline else "" for name in names]
    _bars(axes, names, values, None, labels, _THEIRS)
    axes.set_title(f"theirs: {one.source}\n{one.headline}, {one.baseline} is {base}", fontsize=9)
    axes.set_xlabel("points", fontsize=9)


def _ours(axes, plan, results, found):
    names = list(found)
    pairs = [found[name].difference for name in names]
    values = [0.0 if pair is None else pair.mean for pair in pairs]
    reach = [
        0.0 if pair is None or math.isnan(pair.low) else pair.high - pair.mean for pair in pairs
    ]
    labels = ["baseline" if pair is None else "" for pair in pairs]
    _bars(axes, names, values, reach, labels, _OURS)
    base = next((name for name, pair in zip(names, pairs, strict=True) if pair is None), names[0])
    form = ".3f" if results.headline == LOSS else ".2f"
    sizes = f"{results.unit}: {len(found[base].values)}"
    axes.set_title(
        f"ours: scale {plan.scale.name}, {sizes}\n{results.headline}, {base} is "
        f"{found[base].mean:{form}}",
        fontsize=9,
    )
    unit = "nats, lower is better" if results.headline == LOSS else "points"
    axes.set_xlabel(f"{unit}; lines: 95 % interval" if any(reach) else unit, fontsize=9)


def _bars(axes, names, values, reach, labels, color):
    rows = range(len(names))
    colors = [_BASE if label else color for label in labels]
    axes.barh(rows, values, xerr=reach, color=colors, height=0.62, capsize=3)
    axes.axvline(0, color="black", linewidth=0.8)
    reach = reach or [0.0] * len(names)
    for row, value, error, label in zip(rows, values, reach, labels, strict=True):
        side = 1 if value >= 0 else -1
        axes.annotate(
            label or f"{value:+.2f}",
            (value + side * error, row),
            xytext=(4 * side, 0),
            textcoords="offset points",
            va="center",
            ha="left" if side > 0 else "right",
            fontsize=8,
        )
    axes.set_yticks(rows, names, fontsize=8)
    axes.invert_yaxis()
    axes.use_sticky_edges = False
    axes.margins(x=0.22)
    axes.grid(axis="x", alpha=0.3)
    axes.tick_params(axis="x", labelsize=8)
