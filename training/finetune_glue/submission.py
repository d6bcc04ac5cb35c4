"""Files of predictions as GLUE's server takes them."""

import shutil

import numpy as np

from training.finetune_glue.medians import seed_of_median
from training.finetune_glue.protocol import COLUMNS
from training.finetune_glue.scores import HIGHEST_SCORE

FOLDER = "submission"


def write_submission(path, task, indices, found):
    """Writes a file of predictions: a header, then the number of each row and its prediction.

    Classes are written as in the official files (`0` and `1`, or words as `not_entailment`);
    scores are cut to 0 to 5 and have three decimals.

    Args:
        path: file to write, called as the column: `CoLA.tsv`, `MNLI-mm.tsv`, ...
        task: a `GlueTask`.
        indices: numbers of the rows in the official file, from 0.
        found: class ids or scores, `(rows,)`.

    References:
        https://gluebenchmark.com/faq
    """
    words = task.labels or task.classes
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        file.write("index\tprediction\n")
        for index, value in zip(indices, found, strict=True):
            text = words[value] if words else f"{np.clip(value, 0, HIGHEST_SCORE):.3f}"
            file.write(f"{index}\t{text}\n")


def chosen_runs(results):
    """Returns which runs predict the test sets: of each column the median one of the best rate.

    Args:
        results: dictionary of column's name -> `ColumnResult`.

    Returns:
        Dictionary: (task, learning rate, seed) -> tuple of names of columns.
    """
    found = {}
    for name, result in results.items():
        if result.best_rate is not None:
            seed = seed_of_median(result.rates[result.best_rate])
            key = (COLUMNS[name].task, result.best_rate, seed)
            found[key] = (*found.get(key, ()), name)
    return found


def collect(out, folders):
    """Copies the files of the chosen runs into one folder; returns their names.

    Args:
        out: folder of the grid.
        folders: folder of a run, in `out` -> names of its columns.
    """
    target = out / FOLDER
    target.mkdir(exist_ok=True)
    names = []
    for folder, columns in folders.items():
        for column in columns:
            name = f"{COLUMNS[column].title}.tsv"
            partial = target / f".partial.{name}"
            shutil.copyfile(out / folder / name, partial)
            partial.replace(target / name)
            names.append(name)
    return names
