"""Pairs of texts: read, checked, and as tokens."""

import dataclasses
import typing

import numpy as np

from keras_tupe.tokenizers.rows import framed
from training.finetune.task import digest_of, part_of

_TOLD = 5  # mistakes of a file
_SIDES = ("source", "target")
_TEXTS_AT_ONCE = 10_000


@dataclasses.dataclass(frozen=True)
class Pairs:
    """The pairs of a file."""

    path: str
    sources: list
    targets: list
    lines: list | None = None  # numbers of their lines, from 1; None for all lines

    def __len__(self):
        return len(self.sources)

    def line(self, number):
        """Returns where a pair is, for a message."""
        return f"{self.path}, line {number + 1 if self.lines is None else self.lines[number]}"

    def digest(self):
        """Returns a hash of the pairs, hexadecimal."""
        return digest_of(zip(self.sources, self.targets, strict=True))

    def part(self, limit):
        """Returns at most so many of the pairs, always the same ones; `None` for all."""
        chosen = part_of(len(self), limit).tolist()
        sources, targets = ([x[n] for n in chosen] for x in (self.sources, self.targets))
        return Pairs(self.path, sources, targets, [n + 1 for n in chosen])


class Tokens(typing.NamedTuple):
    """Pairs as tokens, special ones included: lists of arrays."""

    sources: list
    targets: list
    num_cut: dict  # number of the texts that were cut, of "source" and of "target"


def read_pairs(path):
    """Returns the `Pairs` of a file with a source, a tab and a target in each line, in UTF-8.

    A byte order mark, and a carriage return before an end of line, are not part of a text. Of lines
    that are not pairs the first few are told.
    """
    with open(path, "rb") as file:
        lines = file.read().removeprefix(b"\xef\xbb\xbf").split(b"\n")
    if not lines[-1]:
        lines.pop()
    pairs, problems = [], []
    for number, line in enumerate(lines, 1):
        try:
            pairs.append(_pair(line.removesuffix(b"\r")))
        except ValueError as error:
            problems.append(f"{path}, line {number}: {error}")
    _refuse(problems, path)
    if not pairs:
        raise ValueError(f"A file of pairs must have a pair. Received: {path}, which is empty")
    sources, targets = zip(*pairs, strict=True)
    return Pairs(str(path), list(sources), list(targets))


def _pair(line):
    """Returns the source and the target of a line of bytes."""
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"the text must be UTF-8. Received: {error.reason}") from None
    columns = text.split("\t")
    if len(columns) != 2:
        raise ValueError(
            "a line must have two columns, source and target, with one tab between them. Received: "
            f"{len(columns)} column{'s'[: len(columns) != 1]}, {text!r:.80}"
        )
    for side, column in zip(_SIDES, columns, strict=True):
        if not column.strip():
            raise ValueError(f"the {side} must not be empty. Received: {text!r:.80}")
    return columns


def tokens_of(pairs, preprocessor, cut_long):
    """Returns the `Tokens` of pairs, as the preprocessor's rows have them.

    The first few texts without a token are told, and those that are too long unless they are cut.
    """
    starts_with_end = preprocessor.decoder_starts_with_end
    # the labels have one more token, the end, than the row that the decoder reads
    most = {
        "source": preprocessor.encoder_sequence_length,
        "target": preprocessor.decoder_sequence_length + 1,
    }
    found, num_cut, problems = {}, {}, []
    for side in _SIDES:
        texts = getattr(pairs, f"{side}s")
        rows = tokenized(preprocessor.tokenizer.op, texts, side == "target" and starts_with_end)
        empty = 3 if side == "target" and starts_with_end else 2
        for number, row in enumerate(rows):
            place = pairs.line(number)
            if len(row) == empty:
                problems.append(
                    f"{place}: the {side} must have a word that the vocabulary can write. "
                    f"Received: {texts[number]!r:.80}"
                )
            elif len(row) > most[side] and not cut_long:
                extra = side == "target"  # the end token, which the decoder does not read
                option = "--target-length" if extra else "--length"
                problems.append(
                    f"{place}: the {side} must have at most {most[side] - extra} tokens, special "
                    f"ones included; give a larger {option}, or --cut-long. Received: "
                    f"{len(row) - extra} tokens"
                )
        num_cut[side] = sum(len(row) > most[side] for row in rows)
        found[side] = [row[: most[side]] for row in rows]
    _refuse(problems, pairs.path)
    return Tokens(found["source"], found["target"], num_cut)


def tokenized(tokenizer, texts, starts_with_end):
    """Returns the tokens of texts between start and end token, a list of int32 arrays.

    In BART the end token comes before the start token too.
    """
    found = []
    first = [np.int32(tokenizer.end_id)] if starts_with_end else []
    for start in range(0, len(texts), _TEXTS_AT_ONCE):
        ids = tokenizer.tokenize(texts[start : start + _TEXTS_AT_ONCE])
        rows = framed(tokenizer, ids, True, True)
        parts = np.split(rows.flat_values.numpy(), rows.row_splits.numpy()[1:-1])
        found += [np.concatenate([first, row]).astype("int32") for row in parts]
    return found


def _refuse(problems, path):
    if len(problems) > _TOLD:
        problems = [*problems[:_TOLD], f"{path}: {len(problems) - _TOLD} more such lines"]
    if problems:
        raise ValueError("\n".join(problems))
