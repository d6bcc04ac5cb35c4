"""The tasks of GLUE: one record each, which also says how their official files are written."""

import dataclasses
import re

_ENTAILMENT = ("entailment", "not_entailment")


@dataclasses.dataclass(frozen=True)
class GlueTask:
    """A task of GLUE.

    Attributes:
        name: as in TFDS: `cola`, `sst2`, ...
        folder: name of the folder of the official files: `CoLA`, `SST-2`, ...
        columns: the one or two text columns of the official files.
        classes: names of the classes, in the order of their ids, or `None` for a regression.
        metrics: what is reported for the task: `accuracy`, `f1`, `matthews`, `pearson`,
            `spearman`. The first one is what TUPE reports; BERT reports the second where there is
            one.
        rows: official number of rows of each split. Where two versions of the files are
            in use, a tuple of both numbers.
        label_column: the column of labels in the official files.
        labels: how the files write the labels, in the order of the classes.
        tfds_columns: names of the text columns in TFDS, if others.
        header: names of the columns of files that have no header line, or `None`.
    """

    name: str
    folder: str
    columns: tuple
    classes: tuple | None
    metrics: tuple
    rows: dict
    label_column: str = "label"
    labels: tuple | None = None
    tfds_columns: tuple | None = None
    header: tuple | None = None

    @property
    def num_classes(self):
        """Number of classes; 1 for a regression."""
        return len(self.classes) if self.classes else 1

    @property
    def splits(self):
        """Names of the splits."""
        return tuple(self.rows)


def _rows(train, validation, test):
    return {"train": train, "validation": validation, "test": test}


# The tasks of GLUE, by their names in TFDS.
TASKS = {
    task.name: task
    for task in (
        GlueTask(
            "cola",
            "CoLA",
            ("sentence",),
            ("unacceptable", "acceptable"),
            ("matthews",),
            _rows(8551, 1043, 1063),
            labels=("0", "1"),
            header=("source", "label", "mark", "sentence"),
        ),
        GlueTask(
            "sst2",
            "SST-2",
            ("sentence",),
            ("negative", "positive"),
            ("accuracy",),
            _rows(67349, 872, 1821),
            labels=("0", "1"),
        ),
        GlueTask(
            "mrpc",
            "MRPC",
            ("#1 String", "#2 String"),
            ("not_equivalent", "equivalent"),
            ("accuracy", "f1"),
            _rows(3668, 408, 1725),
            label_column="Quality",
            labels=("0", "1"),
            tfds_columns=("sentence1", "sentence2"),
        ),
        GlueTask(
            "stsb",
            "STS-B",
            ("sentence1", "sentence2"),
            None,
            ("pearson", "spearman"),
            _rows(5749, 1500, 1379),
            label_column="score",
        ),
        GlueTask(
            "qqp",
            "QQP",
            ("question1", "question2"),
            ("not_duplicate", "duplicate"),
            ("accuracy", "f1"),
            _rows((363846, 363849), 40430, 390965),
            label_column="is_duplicate",
            labels=("0", "1"),
        ),
        GlueTask(
            "mnli",
            "MNLI",
            ("sentence1", "sentence2"),
            ("entailment", "neutral", "contradiction"),
            ("accuracy",),
            {
                "train": 392702,
                "validation_matched": 9815,
                "validation_mismatched": 9832,
                "test_matched": 9796,
                "test_mismatched": 9847,
            },
            label_column="gold_label",
            tfds_columns=("premise", "hypothesis"),
        ),
        GlueTask(
            "qnli",
            "QNLI",
            ("question", "sentence"),
            _ENTAILMENT,
            ("accuracy",),
            _rows(104743, 5463, 5463),
        ),
        GlueTask(
            "rte",
            "RTE",
            ("sentence1", "sentence2"),
            _ENTAILMENT,
            ("accuracy",),
            _rows(2490, 277, 3000),
        ),
        GlueTask(
            "wnli",
            "WNLI",
            ("sentence1", "sentence2"),
            _ENTAILMENT[::-1],
            ("accuracy",),
            _rows(635, 71, 146),
            labels=("0", "1"),
        ),
    )
}


def find_task(name):
    """Finds a task by its name, in any of the usual spellings: `sst2`, `SST-2`, `STS-B`, ...

    Raises:
        ValueError: if there is none of this name.
    """
    task = TASKS.get(re.sub("[-_ ]", "", str(name)).lower())
    if task is None:
        raise ValueError(
            f"Unknown task of GLUE. Expected one of {list(TASKS)}. Received: task={name!r}"
        )
    return task


def find_split(task, name):
    """Returns the name of a split of `task`; `dev` is read as `validation`.

    Raises:
        ValueError: if the task has no such split.
    """
    split = re.sub("^dev", "validation", str(name))
    if split not in task.rows:
        raise ValueError(
            f"{task.folder} has the splits {list(task.splits)}; choose one of them. "
            f"Received: split={name!r}"
        )
    return split
