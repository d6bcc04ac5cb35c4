"""Results of the runs of a grid, and the files that say so."""

from keras_tupe.data import GLUE_TASKS, write_json
from training.command.report_files import replaced_picture, replaced_text
from training.finetune_glue.medians import ColumnResult
from training.finetune_glue.protocol import COLUMNS
from training.finetune_glue.report import record
from training.finetune_glue.scores import METRIC_NAMES, constant_scores


def column_results(plan, done):
    """Returns the `ColumnResult` of each column, by name, in the order of the papers' tables.

    Args:
        plan: a `Plan`.
        done: dictionary of `Job` -> metrics, of all runs of the grid.
    """
    found = {}
    for name, column in COLUMNS.items():
        if column.task in plan.tasks:
            rates = {rate: [] for rate in plan.learning_rates}
            for job, metrics in done.items():
                if job.task == column.task:
                    scores = metrics["columns"][name]
                    value = None if scores is None else scores[plan.metrics[column.task]]
                    rates[job.learning_rate].append(value)
            found[name] = ColumnResult(rates)
    return found


def facts_of_rows(rows, done):
    """Returns what is to be said of the rows of each task.

    Args:
        rows: name of each task -> `TaskRows`.
        done: dictionary of `Job` -> metrics.
    """
    cut = {job.task: metrics["cut_rows"] for job, metrics in done.items()}
    return {
        task: {
            "train_rows": len(found.train.indices),
            "all_train_rows": found.all_rows,
            "dev_rows": {name: len(split.indices) for name, split in found.labeled.items()},
            "cut_rows": cut[task],
            "bad_lines": len(found.skipped),
        }
        for task, found in rows.items()
    }


def constants(rows, plan):
    """Returns the score of a constant answer for each column, percent; see `constant_scores`."""
    return {
        name: constant_scores(GLUE_TASKS[task], found.train.labels, split.labels)[
            plan.metrics[task]
        ]
        for task, found in rows.items()
        for name, split in found.labeled.items()
    }


def write(out, results, facts, text):
    """Writes `results.json`, `results.md` and `grid.png`, each whole or not at all.

    Args:
        out: folder of the grid.
        results: dictionary of column's name -> `ColumnResult`.
        facts: see `record`.
        text: content of `results.md`.
    """
    names = {name: METRIC_NAMES[facts["metrics"][COLUMNS[name].task]] for name in results}
    write_json(out / "results.json", record(results, facts))
    replaced_text(out / "results.md", text)

    def draw(path):
        from training.finetune_glue.picture import draw_grid

        draw_grid(path, results, facts["constants"], names)

    replaced_picture(out / "grid.png", draw)
