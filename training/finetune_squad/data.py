"""The questions of `training.finetune_squad`, and their windows as rows."""

import dataclasses
import hashlib

import numpy as np

from keras_tupe.data import read_squad, squad_windows
from keras_tupe.data.rows.padded import Padded

FILES = ("train", "dev")


@dataclasses.dataclass(frozen=True)
class Questions:
    """Questions of a file.

    Attributes:
        questions: list of `SquadQuestion`s.
        total: number of good questions in the file.
        skipped: a sentence for each bad question that was left out.
    """

    questions: list
    total: int
    skipped: list

    def digest(self):
        """Returns a hash of all that counts, hexadecimal."""
        digest = hashlib.sha256()
        for question in self.questions:
            values = (question.id, question.context, question.question, question.answers)
            digest.update(repr(values).encode("utf-8", "surrogatepass"))
        return digest.hexdigest()


def read_questions(settings):
    """Reads both files.

    Args:
        settings: a `Settings` of `training.finetune_squad`.

    Returns:
        Dictionary: `"train"` and `"dev"` -> `Questions`.

    Raises:
        ValueError: with a line for each file that cannot be read.
    """
    found, problems = {}, []
    for name in FILES:
        skipped = []
        try:
            questions = read_squad(
                getattr(settings, name), skipped=skipped if settings.skip_bad else None
            )
        except ValueError as error:
            problems.append(f"--{name}: {error}")
            continue
        chosen = _part(questions, getattr(settings, f"max_{name}_questions"))
        found[name] = Questions(chosen, len(questions), skipped)
    if problems:
        raise ValueError("\n".join(problems))
    return found


def windows_of(questions, tokenizer, settings):
    """Returns the `SquadWindows` of questions.

    Args:
        questions: list of `SquadQuestion`s.
        tokenizer: a `TupeTokenizer`.
        settings: a `Settings` of `training.finetune_squad`.

    Raises:
        ValueError: as `keras_tupe.data.squad_windows`.
    """
    return squad_windows(
        questions,
        tokenizer.op,
        settings.length,
        doc_stride=settings.doc_stride,
        max_question_length=settings.max_question_length,
    )


def rows_of(windows, *, labelled, pad_id, batch_size, seed=0, segments=False):
    """Returns the windows as `Padded` batches, without their padding.

    Args:
        windows: a `SquadWindows`.
        labelled: whether the positions of the answers go with them, `(windows, 2)`.
        pad_id: id of padding.
        batch_size: rows per batch.
        seed: of their order.
        segments: whether the model takes `segment_ids`.
    """
    sizes = windows.padding_mask.sum(axis=1)
    labels = np.stack([windows.start_positions, windows.end_positions], axis=1)
    inputs = {"token_ids": _cut(windows.token_ids, sizes)}
    if segments:
        inputs["segment_ids"] = _cut(windows.segment_ids, sizes)
    return Padded(
        inputs,
        labels if labelled else None,
        pad_id=pad_id,
        batch_size=batch_size,
        seed=seed,
    )


def spread(windows, outputs):
    """Returns start and end logits `(windows, length)` of what the model says of each row.

    Args:
        windows: a `SquadWindows`.
        outputs: list of arrays `(2, tokens of the row)`.
    """
    logits = np.zeros((2, *windows.token_ids.shape), "float32")
    for number, row in enumerate(outputs):
        logits[:, number, : row.shape[1]] = row
    return logits[0], logits[1]


def _cut(rows, sizes):
    return [row[:size] for row, size in zip(rows, sizes, strict=True)]


def _part(questions, count):
    """Returns `count` of the questions, always the same ones, in the order of the file."""
    if count is None or count >= len(questions):
        return questions
    chosen = np.sort(np.random.default_rng(0).permutation(len(questions))[:count])
    return [questions[index] for index in chosen]
