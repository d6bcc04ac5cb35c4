"""Medians of a grid over seeds, best learning rates, the average; tables and the picture."""

import math
import statistics

from keras_tupe.data.tasks.glue import TASKS as GLUE_TASKS
from training.command.report import table
from training.finetune.glue.protocol import COLUMNS, PROTOCOLS
from training.finetune.report import Panel, Series, draw_panels

METRIC_NAMES = {
    "accuracy": "accuracy",
    "f1": "F1",
    "matthews": "Matthews correlation",
    "pearson": "Pearson correlation",
    "spearman": "Spearman correlation",
}


# === Numbers ===


def median(values):
    """Returns the median of scores, `None` below all numbers; `None` if the median is not a number.

    Example:
        >>> median([60.0, None, 50.0]), median([60.0, None])
        (50.0, None)
    """
    found = statistics.median(-math.inf if value is None else value for value in values)
    return found if math.isfinite(found) else None


def seed_of_median(values):
    """Returns the index of the score that is the nearest to the median, the first of equals."""
    middle = median(values)
    known = [(abs(value - middle), seed) for seed, value in enumerate(values) if value is not None]
    return min(known)[1]


def column(rates, constant):
    """Returns what `results.json` says of a column.

    The score is that of the rate with the highest median, the lowest of equals; `None` if all fail.

    Args:
        rates: learning rate -> scores of its seeds, percent; `None` of a run that diverged, which
            counts as the worst of all.
        constant: score of a constant answer.
    """
    medians = {rate: median(values) for rate, values in rates.items()}
    known = [(-value, rate) for rate, value in medians.items() if value is not None]
    best = min(known)[1] if known else None
    return {
        "rates": {str(rate): values for rate, values in rates.items()},
        "medians": {str(rate): value for rate, value in medians.items()},
        "best_rate": best,
        "score": medians.get(best),
        "constant": constant,
    }


def average(tasks):
    """Returns the plain mean over columns, `None` if one has no score, and what it is called."""
    values = [found["score"] for _, found, _ in _columns(tasks)]
    count = f"{len(values)} of " if len(values) < len(COLUMNS) else "all "
    mean = None if None in values else statistics.fmean(values)
    return {"average": mean, "average_is": f"mean of {count}{len(COLUMNS)} columns"}


def chosen_runs(tasks):
    """Returns which runs predict the test sets: of each column the median one of the best rate.

    They are (task, learning rate, seed) -> tuple of names of columns.
    """
    found = {}
    for known, result, _ in _columns(tasks):
        rate = result["best_rate"]
        if rate is not None:
            key = (known.task, rate, seed_of_median(result["rates"][str(rate)]))
            found[key] = (*found.get(key, ()), known.name)
    return found


def _columns(tasks):
    """Returns (`Column`, what is said of it, what is said of its task), in the papers' order."""
    return [
        (COLUMNS[name], task["columns"][name], task)
        for name in COLUMNS
        for task in [tasks.get(COLUMNS[name].task, {"columns": {}})]
        if name in task["columns"]
    ]


def changes(plan, settings, length):
    """Returns a sentence for each thing that is not as in the paper.

    The `length` is that of the rows: a model may take less than the plan has.
    """
    paper = PROTOCOLS[plan.name]
    found = []
    if set(plan.learning_rates) != set(paper.learning_rates):
        ours, theirs = (", ".join(map(str, x.learning_rates)) for x in (plan, paper))
        found.append(f"learning rates {ours}, not {theirs}")
    pairs = [
        ("seeds", plan.seeds, paper.seeds),
        ("batch size", plan.batch_size, paper.batch_size),
        ("warm-up", plan.warmup, paper.warmup),
        ("length", length, paper.length),
    ]
    by_epochs = {}
    for task in plan.tasks:
        key = (plan.epochs[task], paper.epochs[task])
        by_epochs.setdefault(key, []).append(GLUE_TASKS[task].folder)
    for key, names in sorted(by_epochs.items()):
        pairs.append(("epochs", key[0], key[1], f" ({', '.join(names)})"))
    pairs += [
        ("dropout", settings.dropout, 0.1),
        ("weight decay", settings.weight_decay, 0.01),
        ("clip norm", settings.clip_norm, 1.0),
    ]
    found += [
        f"{x} {ours}, not {theirs}{''.join(where)}"
        for x, ours, theirs, *where in pairs
        if ours != theirs
    ]
    if settings.limit is not None:
        found.append(f"at most {settings.limit:,} training rows of a task")
    if settings.random_labels:
        found.append("shuffled training labels: a control")
    return found


# === Tables and the picture ===


def report(results):
    """Returns Markdown: a table for each column's grid, one of all columns, and notes."""
    parts = [f"# GLUE dev sets: {results['position']}, protocol {results['protocol']}"]
    for known, found, task in _columns(results["tasks"]):
        parts += [f"## {known.title} ({METRIC_NAMES[task['metric']]}, %)", _grid(found)]
    parts += ["## All columns", _all_columns(results)]
    mean = results["average"]
    parts.append(f"{results['average_is'].capitalize()}: {'-' if mean is None else _number(mean)}")
    return parts + _notes(results)


def _number(value):
    """Returns a score with two decimals, as the papers print it."""
    return "failed" if value is None else f"{value:.2f}"


def _grid(found):
    """A row for each learning rate, a column for each seed."""
    seeds = len(next(iter(found["rates"].values())))
    header = ["learning rate", *(f"seed {seed}" for seed in range(seeds)), "median", ""]
    rows = [
        [
            rate,
            *map(_number, values),
            _number(found["medians"][rate]),
            "best" if rate == str(found["best_rate"]) else "",
        ]
        for rate, values in found["rates"].items()
    ]
    return table(header, rows)


def _all_columns(results):
    header = ["column", "metric", "score", "learning rate", "constant answer", "training rows"]
    rows = []
    for known, found, task in _columns(results["tasks"]):
        used, official = task["train_rows"], task["all_train_rows"]
        rows.append(
            [
                known.title,
                METRIC_NAMES[task["metric"]],
                _number(found["score"]),
                "-" if found["best_rate"] is None else str(found["best_rate"]),
                _number(found["constant"]),
                f"{used:,}" if used == official else f"{used:,} of {official:,}",
            ]
        )
    return table(header, rows)


def _notes(results):
    """What a reader must know beside the numbers."""
    source, seeds = PROTOCOLS[results["protocol"]].source, len(results["seeds"])
    notes = [
        f"Score: the median over {seeds} seed{'s' if seeds > 1 else ''} of the best learning rate. "
        f"Constant answer: what a model scores that always says what is the most frequent in the "
        f"training set.",
        f"Not the protocol of the paper ({source}): {'; '.join(results['changes'])}."
        if results["changes"]
        else f"Settings of the protocol: {source}.",
    ]
    for name, task in results["tasks"].items():
        title = GLUE_TASKS[name].folder
        names = {"train": "train", **{name: f"{x.title} dev" for name, x in COLUMNS.items()}}
        cut = [f"{n:,} of {names[where]}" for where, n in task["cut_rows"].items() if n]
        if cut:
            notes.append(
                f"{title}: rows longer than {results['length']} tokens are cut: {', '.join(cut)}."
            )
        if task["bad_lines"]:
            notes.append(f"{title}: {task['bad_lines']:,} bad lines were left out.")
    return notes


def draw(path, results):
    """Draws the scores of all runs over the learning rate, a panel for each column.

    A dot is a run, the dashes are medians, and the star is the best one. A dotted line is what a
    constant answer scores, where that is near. Runs that failed are crosses at the bottom.
    """
    panels = [_panel(*one) for one in _columns(results["tasks"])]
    draw_panels(path, panels)


def _panel(known, found, task):
    rates = sorted(found["rates"], key=float)
    dots = [
        (number, value, None, None)
        for number, rate in enumerate(rates)
        for value in found["rates"][rate]
        if value is not None
    ]
    constant = found["constant"]
    values = [value for _, value, *_ in dots] or [constant]
    lowest, highest = min(values), max(values)
    if 0 <= lowest - constant < max(highest - lowest, 3):
        lowest = constant
    room = max(0.15 * (highest - lowest), 0.5)
    medians = [(n, found["medians"][rate], None, None) for n, rate in enumerate(rates)]
    medians = [point for point in medians if point[1] is not None]
    failed = [
        (number, lowest - room / 2, None, None)
        for number, rate in enumerate(rates)
        if None in found["rates"][rate]
    ]
    best, title = [], known.title
    if found["best_rate"] is not None:
        best = [(rates.index(str(found["best_rate"])), found["score"], None, None)]
        title += f": {found['score']:.1f}"
    return Panel(
        title=f"{title} (constant answer: {constant:.1f})",
        x="learning rate",
        y=f"{METRIC_NAMES[task['metric']]} (%)",
        ticks=[f"{float(rate):g}" for rate in rates],
        series=[
            Series("a seed", dots, {"fmt": "o", "color": "C0", "alpha": 0.6}),
            Series("failed", failed, {"fmt": "x", "color": "C3"}),
            Series("median", medians, {"fmt": "_-", "color": "C0", "markersize": 14}),
            Series("best", best, {"fmt": "*", "color": "C1", "markersize": 13, "zorder": 4}),
        ],
        lines=[("constant answer", constant, "gray", ":")],
        ends=(lowest - room, highest + room),
    )
