"""The rows of the tasks to fine-tune on: texts, and tokens of them."""

import dataclasses
import hashlib

import keras
import numpy as np

from keras_tupe import TupeTextClassifierPreprocessor
from keras_tupe.data import GlueRows, read_glue
from training.finetune_glue.protocol import columns_of

_CHUNK = 1024  # texts tokenized at a time


@dataclasses.dataclass(frozen=True)
class TaskRows:
    """What a task is trained on and scored on.

    Attributes:
        train: `GlueRows` of the training set.
        labeled: column's name -> `GlueRows` of its dev set.
        test: column's name -> `GlueRows` of its test set; empty if nobody asked.
        all_rows: number of training rows, those that are not used included.
        skipped: a sentence for each bad line that was left out.
    """

    train: GlueRows
    labeled: dict
    test: dict
    all_rows: int
    skipped: list

    def digest(self):
        """Returns a hash of training and dev sets, hexadecimal."""
        return _digest(self.train, *self.labeled.values())

    def test_digest(self, column):
        """Returns a hash of a column's test set, hexadecimal."""
        return _digest(self.test[column])


def _digest(*splits):
    digest = hashlib.sha256()
    for rows in splits:
        for texts in rows.texts:
            digest.update("\0".join(texts).encode("utf-8"))
            digest.update(b"\1")
        labels = rows.indices if rows.labels is None else rows.labels
        digest.update(np.asarray(labels, "float32").tobytes())
    return digest.hexdigest()


def read_tasks(settings, names):
    """Reads all tasks.

    Args:
        settings: a `Settings` of `training.finetune_glue`.
        names: names of tasks.

    Returns:
        Dictionary: name -> `TaskRows`.

    Raises:
        ValueError: with a line for each split that cannot be read.
    """
    problems, found = [], {}
    for name in names:
        skipped = []

        def read(split, name=name, skipped=skipped):
            try:
                return read_glue(
                    name,
                    settings.data,
                    split,
                    data_dir=settings.tfds_dir,
                    check_counts=settings.check_counts and not settings.skip_bad,
                    skipped=skipped if settings.skip_bad else None,
                )
            except (ValueError, ImportError) as error:
                problems.append(_of_command_line(str(error)))
                return None

        train = read("train")
        labeled = {column.name: read(column.split) for column in columns_of(name)}
        tested = columns_of(name) if settings.submission else []
        test = {column.name: read(column.test_split) for column in tested}
        if not problems:
            official = len(train.indices)
            train = _part(train, settings.max_train_rows)
            found[name] = TaskRows(train, labeled, test, official, skipped)
    if problems:
        raise ValueError("\n".join(problems))
    return found


def _of_command_line(message):
    """Returns a message of `read_glue` with what to do here."""
    return (
        message.replace("give check_counts=False", "give --no-check-counts")
        .replace("`source` must", "--data must")
        .replace("source=", "data=")
    )


def _part(rows, count):
    """Returns `count` of the rows, always the same ones, in the order of the file."""
    if count is None or count >= len(rows.indices):
        return rows
    chosen = np.sort(np.random.default_rng(0).permutation(len(rows.indices))[:count])
    texts = tuple([texts[index] for index in chosen] for texts in rows.texts)
    return GlueRows(texts, rows.labels[chosen], rows.indices[chosen])


@dataclasses.dataclass(frozen=True)
class Tokens:
    """Tokens of rows, without padding.

    Attributes:
        token_ids: list of int32 arrays.
        segment_ids: list of int32 arrays, or `None` for a model without segments.
        num_cut: number of rows that were longer and lost their ends.
    """

    token_ids: list
    segment_ids: list | None
    num_cut: int


def tokenize(tokenizer, texts, length, segments):
    """Returns `Tokens` of texts or pairs of texts.

    Args:
        tokenizer: a `TupeTokenizer`.
        texts: tuple of one or two lists of strings.
        length: most tokens of a row, special ones included.
        segments: whether the model takes `segment_ids`.
    """
    preprocessor = TupeTextClassifierPreprocessor(
        tokenizer, sequence_length=length, segments=segments
    )
    longer = TupeTextClassifierPreprocessor(tokenizer, sequence_length=length + 1)
    token_ids, segment_ids, num_cut = [], [], 0
    for start in range(0, len(texts[0]), _CHUNK):
        part = [column[start : start + _CHUNK] for column in texts]
        inputs = _arrays(preprocessor, part)
        lengths = inputs["padding_mask"].sum(axis=1)
        full = np.flatnonzero(lengths == length)
        if len(full):  # which of them would have gone on
            rest = _arrays(longer, [[column[index] for index in full] for column in part])
            num_cut += int((rest["padding_mask"].sum(axis=1) > length).sum())
        for name, found in (("token_ids", token_ids), ("segment_ids", segment_ids)):
            if name in inputs:
                found += [row[:n].copy() for row, n in zip(inputs[name], lengths, strict=True)]
    return Tokens(token_ids, segment_ids if segments else None, num_cut)


def _arrays(preprocessor, texts):
    texts = tuple(texts) if len(texts) > 1 else texts[0]
    return {
        name: np.asarray(keras.ops.convert_to_numpy(values), "int32")
        for name, values in preprocessor(texts, y=None).items()
    }


def shuffled_labels(labels, seed):
    """Returns the labels of a control: as many of each, at random rows; a copy."""
    return np.random.default_rng(seed).permutation(labels)
