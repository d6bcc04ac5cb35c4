"""Tables and the record of a grid."""

from keras_tupe.data.tasks.glue import TASKS as GLUE_TASKS
from training.command.durations import duration
from training.command.tables import table
from training.finetune_glue.medians import average
from training.finetune_glue.protocol import COLUMNS, PROTOCOLS
from training.finetune_glue.scores import METRIC_NAMES


def record(results, facts):
    """Returns the content of `results.json`.

    Args:
        results: dictionary of column's name -> `ColumnResult`, in the papers' order.
        facts: dictionary of what else is known of the grid: `command`, `commit`, ...; `rows` by
            task and `metrics` by task are put where they belong.
    """
    facts = dict(facts)
    rows, metrics, constants = (facts.pop(name) for name in ("rows", "metrics", "constants"))
    tasks = {}
    for name, result in results.items():
        task = COLUMNS[name].task
        entry = tasks.setdefault(task, {"metric": metrics[task], **rows[task], "columns": {}})
        entry["columns"][name] = {
            "rates": {str(rate): values for rate, values in result.rates.items()},
            "medians": {str(rate): value for rate, value in result.medians.items()},
            "best_rate": result.best_rate,
            "score": result.score,
            "constant": constants[name],
        }
    mean, phrase = average(results)
    return {**facts, "tasks": tasks, "average": mean, "average_is": phrase}


def report(results, facts):
    """Returns Markdown: a table for each column's grid, then one of all columns."""
    parts = [f"# GLUE dev sets: {facts['position']}, protocol {facts['protocol']}"]
    for name, result in results.items():
        metric = METRIC_NAMES[facts["metrics"][COLUMNS[name].task]]
        parts += [f"## {COLUMNS[name].title} ({metric}, %)", _grid(result)]
    parts += ["## All columns", _columns(results, facts), _average(results)]
    parts += _notes(facts)
    return "\n\n".join(parts) + "\n"


def number(value):
    """Returns a score with two decimals, as the papers print it."""
    return "failed" if value is None else f"{value:.2f}"


def _grid(result):
    """A row for each learning rate, a column for each seed."""
    seeds = len(next(iter(result.rates.values())))
    header = ["learning rate", *(f"seed {seed}" for seed in range(seeds)), "median", ""]
    rows = [
        [
            str(rate),
            *map(number, values),
            number(result.medians[rate]),
            "best" if rate == result.best_rate else "",
        ]
        for rate, values in result.rates.items()
    ]
    return table(header, rows)


def _columns(results, facts):
    header = ["column", "metric", "score", "learning rate", "constant answer", "training rows"]
    rows = []
    for name, result in results.items():
        task = COLUMNS[name].task
        counts = facts["rows"][task]
        used, official = counts["train_rows"], counts["all_train_rows"]
        rows.append(
            [
                COLUMNS[name].title,
                METRIC_NAMES[facts["metrics"][task]],
                number(result.score),
                "-" if result.best_rate is None else str(result.best_rate),
                number(facts["constants"][name]),
                f"{used:,}" if used == official else f"{used:,} of {official:,}",
            ]
        )
    return table(header, rows)


def _average(results):
    mean, phrase = average(results)
    return f"{phrase.capitalize()}: {'-' if mean is None else number(mean)}"


def _notes(facts):
    """What a reader must know beside the numbers."""
    protocol = PROTOCOLS[facts["protocol"]]
    seeds = len(facts["seeds"])
    notes = [
        f"Score: the median over {seeds} seed{'s' if seeds > 1 else ''} of the best learning rate. "
        f"Constant answer: what a model scores that always says what is the most frequent in the "
        f"training set."
    ]
    if facts["changes"]:
        notes.append(
            f"Not the protocol of the paper ({protocol.source}): {'; '.join(facts['changes'])}."
        )
    else:
        notes.append(f"Settings of the protocol: {protocol.source}.")
    for task, counts in facts["rows"].items():
        title = GLUE_TASKS[task].folder
        names = {"train": "train", **{name: f"{x.title} dev" for name, x in COLUMNS.items()}}
        cut = [f"{n:,} of {names[name]}" for name, n in counts["cut_rows"].items() if n]
        if cut:
            notes.append(
                f"{title}: rows longer than {facts['length']} tokens are cut: {', '.join(cut)}."
            )
        if counts["bad_lines"]:
            notes.append(f"{title}: {counts['bad_lines']:,} bad lines were left out.")
    notes.append(f"Time of all runs: {duration(facts['seconds'])}.")
    return notes
