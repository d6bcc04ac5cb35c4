"""The pictures of an ablation: curves and differences to the baseline; scores in tasks."""

import math

import numpy as np
from matplotlib.figure import Figure

from training.command.report import save
from training.evaluate.tasks.perplexity import draw_positions
from training.studies.ablation.over_steps import summaries_at
from training.studies.ablation.results import LOSS
from training.study.pictures import COLUMNS, panels, styles_of

_EARLY = 0.15  # share of the steps before which losses need not be inside of the picture


def draw(path, ablation):
    """Draws held-out loss over training, and the loss less the baseline's at the end.

    Left: a line is the mean over seeds, its band from the lowest to the highest seed. Right: a
    dot is a seed, the bar is the 95 % interval of the mean difference.

    Args:
        path: PNG file to write.
        ablation: an `Ablation`.
    """
    summaries = ablation.summaries[LOSS]
    order = sorted(ablation.methods, key=lambda name: summaries[name].mean)
    styles = styles_of(ablation.methods)
    figure = Figure(figsize=(12.5, max(4.6, 1.6 + 0.36 * len(order))), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.25, 1))
    _curves(left, ablation, order, styles)
    _differences(right, ablation, order, styles)
    save(figure, path)


def _curves(axes, ablation, order, styles):
    lowest, highest = math.inf, -math.inf
    for name in order:
        results = list(ablation.methods[name].results.values())
        millions = np.divide(results[0].tokens, 1e6)
        losses = np.array([result.losses for result in results])  # (seeds, points)
        mean = losses.mean(axis=0)
        label = f"{name}: {mean[-1]:.3f}"
        axes.plot(millions, mean, label=label, linewidth=1.8, **styles[name])
        if len(losses) > 1:
            color = styles[name]["color"]
            axes.fill_between(
                millions, losses.min(axis=0), losses.max(axis=0), color=color, alpha=0.15, lw=0
            )
        late = losses[:, np.array(results[0].steps) >= _EARLY * ablation.steps]
        lowest, highest = min(lowest, late.min()), max(highest, late.max())
    room = 0.04 * (highest - lowest) or 0.1
    axes.set_ylim(lowest - room, highest + room)
    axes.set_xlim(left=0)
    axes.set_xlabel("tokens seen in training (million)")
    predictions = ablation.objective.predictions.replace(" ", "-")
    axes.set_ylabel(f"held-out {predictions} loss (nats)")
    counts = sorted({len(method.results) for method in ablation.methods.values()})
    seeds = " to ".join(str(count) for count in sorted({counts[0], counts[-1]}))
    seeds += " seed" if counts == [1] else " seeds"
    band = ", band: lowest to highest seed" if counts[-1] > 1 else ""
    axes.set_title(f"held-out loss, mean of {seeds}{band}", fontsize=10)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, title="last value, lowest first", title_fontsize=8)


def _differences(axes, ablation, order, styles):
    """Draws a line for each method, the lowest mean difference on top."""
    summaries = ablation.summaries[LOSS]
    names = [name for name in order if summaries[name].difference is not None]
    axes.axvline(0, color="black", linewidth=1)
    axes.set_title(f"at the end: loss less that of {ablation.baseline}", fontsize=10)
    axes.set_xlabel("nats; left is better. Dot: a seed. Bar: 95 % interval of the mean")
    axes.grid(alpha=0.3, axis="x")
    if not names:
        axes.set_yticks([])
        axes.text(0.5, 0.5, "nothing to compare with yet", ha="center", transform=axes.transAxes)
        return
    base, ends = summaries[ablation.baseline].values, []
    for row, name in enumerate(names):
        found, color = summaries[name].difference, styles[name]["color"]
        values = summaries[name].values
        dots = [values[seed] - base[seed] for seed in sorted(set(values) & set(base))]
        if not math.isnan(found.low):
            axes.plot([found.low, found.high], [row, row], color=color, linewidth=2.5, alpha=0.6)
        axes.plot(found.mean, row, "|", color=color, markersize=18, mew=2.5)
        axes.plot(dots, [row] * len(dots), "o", color=color, markersize=5, mec="white", mew=0.6)
        ends += [*dots, found.mean]
    # an interval of very few seeds may be wide: what was seen stays readable
    span = max(max(ends), 0) - min(min(ends), 0) or 0.1
    low = min([min(ends), 0, *(summaries[n].difference.low for n in names)], key=_or_zero)
    high = max([max(ends), 0, *(summaries[n].difference.high for n in names)], key=_or_zero)
    axes.set_xlim(
        max(_or_zero(low), min(*ends, 0) - span) - 0.05 * span,
        min(_or_zero(high), max(*ends, 0) + span) + 0.05 * span,
    )
    axes.set_yticks(
        range(len(names)),
        [f"{name}{'' if not summaries[name].difference.too_few else ' (?)'}" for name in names],
        fontsize=9,
    )
    axes.set_ylim(len(names) - 0.5, -0.5)
    if any(summaries[name].difference.too_few for name in names):
        axes.set_xlabel(
            "nats; left is better. Dot: a seed. Bar: 95 % interval of the mean\n"
            "(?): too few seeds to tell"
        )


def _or_zero(value):
    return 0.0 if math.isnan(value) else value


def draw_by_position(path, ablation):
    """Draws perplexity against position, see `draw_positions`, in the colors of the methods.

    Args:
        path: PNG file to write.
        ablation: an `Ablation` with results by position.
    """
    found = ablation.by_position
    trained = next(iter(found.values()))[0]["trained_length"]
    draw_positions(path, found, trained, styles_of(ablation.methods))


def draw_over_steps(path, ablation):
    """Draws the scores of the tasks over the steps of pre-training.

    A line is the mean over seeds, its band the 95 % interval of the mean; the black line is what
    the baseline scores at the end.

    Args:
        path: PNG file to write.
        ablation: an `Ablation` with scores at steps on the way.
    """
    styles, scores = styles_of(ablation.methods), ablation.task_names
    title = (
        "Scores of the presets on the way\nBand: 95 % interval of the mean. "
        f"Black: {ablation.baseline} at the end"
    )
    figure, axes = panels(len(scores), (4.6, 3.4), title)
    for panel, score in zip(axes, scores, strict=True):
        found = summaries_at(ablation, score)
        panel.set_title(score, fontsize=10)
        panel.grid(alpha=0.3)
        panel.set_xlabel("steps of pre-training (thousand)")
        panel.set_ylabel("percent")
        last = found[ablation.steps].get(ablation.baseline)
        if last is not None:
            panel.axhline(last.mean, color="black", linewidth=0.8)
        for name, style in styles.items():
            of_steps = {s / 1000: at[name] for s, at in found.items() if name in at}
            means = [one.mean for one in of_steps.values()]
            panel.plot(list(of_steps), means, "o", markersize=4, color=style["color"])
            panel.plot(list(of_steps), means, linewidth=1.6, label=name, **style)
            low, high = ([getattr(x, w) for x in of_steps.values()] for w in ("low", "high"))
            if not np.isnan(low).any():
                panel.fill_between(
                    list(of_steps), low, high, color=style["color"], alpha=0.12, lw=0
                )
    axes[0].legend(fontsize=8)
    save(figure, path)


def draw_tasks(path, ablation):
    """Draws the scores of all models in all tasks.

    Methods stand in the order of their held-out loss in every panel, the lowest on top: if what
    helps pre-training helped a task too, the dots would lean that way. A dot is a seed of
    pre-training, the bar is the mean of the seeds, the line is the mean of the baseline.

    Args:
        path: PNG file to write.
        ablation: an `Ablation` with scores of tasks.
    """
    styles = styles_of(ablation.methods)
    losses, scores = ablation.summaries[LOSS], ablation.task_names
    order = sorted(ablation.methods, key=lambda name: losses[name].mean)
    size, title = (
        (4.4, max(2.6, 1.2 + 0.3 * len(order))),
        "Scores in tasks\nMethods by held-out loss",
    )
    figure, axes = panels(len(scores), size, f"{title}, the lowest on top", sharey=True)
    for number, (panel, score) in enumerate(zip(axes, scores, strict=True)):
        _panel(panel, ablation, score, order, styles)
        if number + COLUMNS >= len(scores):
            panel.set_xlabel(f"percent. Dot: a seed, bar: mean,\nline: {ablation.baseline}")
    axes[0].set_yticks(range(len(order)), order, fontsize=9)
    axes[0].set_ylim(len(order) - 0.5, -0.5)
    save(figure, path)


def _panel(axes, ablation, score, order, styles):
    found = ablation.summaries[score]
    axes.set_title(score, fontsize=10)
    axes.grid(alpha=0.3, axis="x")
    if ablation.baseline in found:
        axes.axvline(found[ablation.baseline].mean, color="black", linewidth=1)
    for row, name in enumerate(order):
        if name not in found:
            continue
        color, values = styles[name]["color"], list(found[name].values.values())
        axes.plot(found[name].mean, row, "|", color=color, markersize=16, mew=2.5)
        axes.plot(values, [row] * len(values), "o", color=color, markersize=5, mec="white")
