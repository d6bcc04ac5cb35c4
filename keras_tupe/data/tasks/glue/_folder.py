"""GLUE's official TSV files, with their quirks."""

import math
import pathlib

from keras_tupe.data.tasks._lines import file_place, read_lines

_OLD_MRPC = "msr_paraphrase_{}.txt"


def read_folder(task, folder, split, skipped):
    """Reads a split from the official files.

    Args:
        task: a `GlueTask`.
        folder: the task's folder, or one that holds it under its official name.
        split: name of a split.
        skipped: list to which a sentence for each bad line is added, or `None` to stop at the
            first one. QQP's lines with missing columns are left out in any case.

    Returns:
        `(texts, labels, indices)`: a list of texts for each text column; a list of labels, `None`
        for test splits; the number of each row in the file, from 0.
    """
    lines, path, wanted = _find_lines(task, pathlib.Path(folder), split)
    names, first = _columns(task, lines, path, split)
    texts, labels, indices = [[] for _ in task.columns], [], []
    for index, line in enumerate(lines[first:]):
        number = index + first + 1
        if not wanted(line):
            continue
        values = line.split("\t")
        try:
            if len(values) != len(names):
                raise ValueError(_wrong_count(names, values, path, number))
            row = dict(zip(names, values, strict=True))
            label = None if split.startswith("test") else _label(task, row, path, number)
        except ValueError as error:
            # known lines of the official file; GLUE's own readers leave them out as well
            is_known = task.name == "qqp" and len(values) < len(names)
            if skipped is None and not is_known:
                raise
            if skipped is not None:
                skipped.append(str(error))
            continue
        for column, found in zip(task.columns, texts, strict=True):
            found.append(row[column].strip())
        labels.append(label)
        indices.append(index)
    return texts, None if split.startswith("test") else labels, indices


def _find_lines(task, folder, split):
    """Returns the lines, the file they are from, and whether a line belongs to the split."""
    what = f"a TSV file of {task.folder}"
    if (folder / task.folder).is_dir():
        folder = folder / task.folder
    if not folder.is_dir():
        raise ValueError(
            "`source` must be 'tfds' or a folder with GLUE's official TSV files. "
            f"Received: source={str(folder)!r}"
        )
    path = folder / f"{split.replace('validation', 'dev')}.tsv"
    old = folder / _OLD_MRPC.format("test" if split == "test" else "train")
    if task.name != "mrpc" or path.exists() or not old.exists():
        if not path.exists():
            raise ValueError(
                f"`source` must hold the official files of {task.folder}, here or in a folder "
                f"{task.folder!r}, and {path.name!r} is missing. Received: source={str(folder)!r}"
            )
        return read_lines(path, what), path, lambda line: True
    if split == "test":
        return read_lines(old, what), old, lambda line: True
    # Microsoft's file holds both splits; GLUE publishes which pairs are its validation split.
    lists = [folder / name for name in ("dev_ids.tsv", "mrpc_dev_ids.tsv")]
    list_file = next(filter(pathlib.Path.exists, lists), None)
    if list_file is None:
        raise ValueError(
            f"{old.name!r} holds the train and the validation split together; put GLUE's list "
            f"{lists[0].name!r} beside it. Received: source={str(folder)!r}"
        )
    held_out = {tuple(line.split("\t")[:2]) for line in read_lines(list_file, "GLUE's list")}
    is_validation = split == "validation"
    return (
        read_lines(old, what),
        old,
        lambda line: (tuple(line.split("\t")[1:3]) in held_out) == is_validation,
    )


def _columns(task, lines, path, split):
    """The names of the columns, and the number of header lines."""
    if task.header and split != "test":
        return task.header, 0
    names = tuple(lines[0].split("\t"))
    needed = [*task.columns, *([] if split.startswith("test") else [task.label_column])]
    missing = [name for name in needed if name not in names]
    if missing:
        raise ValueError(
            f"The first line of this file of {task.folder} must name the columns {needed}, and "
            f"{missing} are missing; is it the file of another task? "
            f"Received: {file_place(path, 1)}, columns {list(names)}"
        )
    if len(lines) == 1:
        raise ValueError(
            f"A file of {task.folder} must have rows below its header. "
            f"Received: {file_place(path, 1)}, which is the last one"
        )
    return names, 1


def _label(task, row, path, number):
    value = row[task.label_column]
    if task.classes is None:
        try:
            score = float(value)
        except ValueError:
            score = math.nan
        if not 0 <= score <= 5:
            raise ValueError(
                f"A score of {task.folder} must be a number from 0 to 5. "
                f"Received: {file_place(path, number)}, score {value!r}"
            )
        return score
    labels = task.labels or task.classes
    if value not in labels:
        raise ValueError(
            f"A label of {task.folder} must be one of {list(labels)}. "
            f"Received: {file_place(path, number)}, label {value!r}"
        )
    return labels.index(value)


def _wrong_count(names, values, path, number):
    return (
        f"A line must have {len(names)} columns, separated by tabs: {list(names)}. "
        f"Received: {file_place(path, number)}, which has {len(values)}"
    )
