"""Predictions and scores of a classifier's outputs."""

import numpy as np

from keras_tupe.metrics import accuracy, f1, matthews, pearson, spearman

_METRICS = {
    "accuracy": accuracy,
    "f1": f1,
    "matthews": matthews,
    "pearson": pearson,
    "spearman": spearman,
}
METRIC_NAMES = {
    "accuracy": "accuracy",
    "f1": "F1",
    "matthews": "Matthews correlation",
    "pearson": "Pearson correlation",
    "spearman": "Spearman correlation",
}
HIGHEST_SCORE = 5.0  # of STS-B, whose scores begin at 0


def targets(task, labels):
    """Returns what a model is trained on: `labels`, or scores of 0 to 1 in a column.

    TUPE's scripts divide the scores of STS-B by 5 as well; correlations stay as they are.

    Args:
        task: a `GlueTask`.
        labels: array `(rows,)`, or `None`.
    """
    if labels is None or task.classes is not None:
        return labels
    return (np.asarray(labels, "float32") / HIGHEST_SCORE)[:, np.newaxis]  # (rows, 1)


def predictions(task, outputs):
    """Returns class ids, or scores from about 0 to 5, `(rows,)`.

    Args:
        task: a `GlueTask`.
        outputs: the model's outputs `(rows, classes)`; the lower class wins a tie.
    """
    outputs = np.asarray(outputs)
    return outputs.argmax(axis=1) if task.classes else HIGHEST_SCORE * outputs[:, 0]


def scores(task, labels, found):
    """Returns all scores of a task, name -> percent, accuracy included if there are classes.

    Args:
        task: a `GlueTask`.
        labels: array `(rows,)`.
        found: what `predictions` made.
    """
    names = dict.fromkeys([*task.metrics, *(["accuracy"] if task.classes else [])])
    return {name: 100 * float(_METRICS[name](labels, found)) for name in names}


def constant_scores(task, train_labels, labels):
    """Returns the scores of a model that has learned nothing but how often labels occur.

    It predicts the class that is the most frequent in the training set (or the mean score)
    everywhere. Both correlations of a constant are 0, and so is its Matthews correlation.
    """
    if task.classes is None:
        constant = float(np.mean(train_labels))
    else:
        constant = int(np.bincount(train_labels, minlength=task.num_classes).argmax())
    return scores(task, labels, np.full(len(labels), constant))
