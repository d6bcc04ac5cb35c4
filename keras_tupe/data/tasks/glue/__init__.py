"""GLUE: eight tasks of the papers and WNLI, from TFDS or from the official files."""

import dataclasses
import os

import numpy as np

from keras_tupe.data.tasks.glue._folder import read_folder
from keras_tupe.data.tasks.glue._tasks import TASKS, GlueTask, find_split, find_task
from keras_tupe.data.tasks.glue._tfds import read_tfds

__all__ = ["TASKS", "GlueRows", "GlueTask", "read_glue"]


@dataclasses.dataclass(frozen=True)
class GlueRows:
    """A split of a task of GLUE.

    Args:
        texts: tuple of one or two lists of strings: sentences, or first and second sentences.
        labels: int32 class ids `(rows,)`, float32 scores from 0 to 5 for STS-B, or `None` for test
            splits, whose labels are not public.
        indices: int32 `(rows,)`, the number of each row in the official file, from 0.
    """

    texts: tuple
    labels: np.ndarray | None
    indices: np.ndarray


def read_glue(task, source, split, *, data_dir=None, check_counts=True, skipped=None):
    """Reads a split of a task of GLUE.

    Both sources give the same rows in the same order, with the same class ids. White space at
    both ends of the texts is dropped; apart from that they are as in the files, quotation marks
    included. MRPC's indices differ: TFDS counts its two splits as one file.

    Args:
        task: `cola`, `sst2`, `mrpc`, `stsb`, `qqp`, `mnli`, `qnli`, `rte` or `wnli`; `SST-2` and
            the other usual spellings will do.
        source: `"tfds"` (needs the network when used first), or a folder that holds the official
            TSV files, directly or in a folder of the task's official name, as `SST-2`.
        split: `train`, `validation` (or `dev`), `test`; MNLI has `validation_matched`,
            `validation_mismatched`, `test_matched` and `test_mismatched`.
        data_dir: TFDS's folder, if not the default one. Unused for a folder.
        check_counts: whether another number of rows than the official one is an error. Defaults
            to `True`; give `False` to read a part of the data on purpose.
        skipped: a list: then bad lines are left out, and a sentence for each is appended to it.
            Without it the first bad line is an error. Lines of QQP with too few columns are left
            out in any case, as by GLUE's own reader.

    Returns:
        A `GlueRows`.

    Raises:
        ValueError: if the task, the split or a file is not there; a file is not UTF-8, is empty,
            or lacks a column; a line has another number of columns or an unknown label; or the
            number of rows is not the official one. Messages name file and line.
        ImportError: if TFDS is asked for and not installed.

    Example:
        >>> from keras_tupe.data import GLUE_TASKS
        >>> GLUE_TASKS["mnli"].classes
        ('entailment', 'neutral', 'contradiction')

    References:
        Wang et al. GLUE: A Multi-Task Benchmark and Analysis Platform for Natural Language
        Understanding. ICLR 2019. https://gluebenchmark.com
    """
    task = find_task(task)
    split = find_split(task, split)
    if isinstance(source, str) and source.lower() == "tfds":
        texts, labels, indices = read_tfds(task, split, data_dir)
    elif isinstance(source, (str, os.PathLike)):
        texts, labels, indices = read_folder(task, source, split, skipped)
    else:
        raise TypeError(
            "`source` must be 'tfds' or the path of a folder. "
            f"Received: source of type {type(source).__name__}"
        )
    if check_counts:
        _check_count(task, split, len(indices), source)
    if labels is not None:
        labels = np.array(labels, "float32" if task.classes is None else "int32")
    return GlueRows(tuple(texts), labels, np.array(indices, "int32"))


def _check_count(task, split, count, source):
    official = task.rows[split]
    official = official if isinstance(official, tuple) else (official,)
    if count not in official:
        raise ValueError(
            f"The official {split} split of {task.folder} has {' or '.join(map(str, official))} "
            "rows; get the complete file, or give check_counts=False to read a part on purpose. "
            f"Received: source={str(source)!r}, {count} rows"
        )
