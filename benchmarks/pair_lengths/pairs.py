"""Pairs whose targets are longer in the test than in training, as files of `finetune seq2seq`.

Every file is a function of the task alone: the same pairs in the same order each time.
"""

import dataclasses
import pathlib
import random
import re

from training.command.report import replaced_text

# SCAN's actions as words that a vocabulary has whole.
_ACTIONS = {"I_TURN_LEFT": "LEFT", "I_TURN_RIGHT": "RIGHT"}
_LINE = re.compile(r"IN: (.+?) OUT: (.+?)\s*")
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


@dataclasses.dataclass(frozen=True)
class Task:
    """Pairs of texts.

    Attributes:
        train, valid, test: lists of (source, target); targets of `test` are the longer ones.
        max_source_length, max_target_length: tokens of the longest, special ones included, and a
            few more of targets, so that one can be written too long.
        text: what the pairs are, for a table.
    """

    train: list
    valid: list
    test: list
    max_source_length: int
    max_target_length: int
    text: str


def scan(folder):
    """Returns SCAN's length split (Lake and Baroni 2018): commands to sequences of actions.

    Training has up to 22 actions, the test 24 to 48. Of training 200 pairs are held out, and 400 of
    the test are taken, both at random.

    Args:
        folder: path of `length-train.txt` and `length-test.txt`.

    Raises:
        ValueError: if a file is missing or has another line.
    """
    train, test = (_read(pathlib.Path(folder) / f"length-{part}.txt") for part in ("train", "test"))
    for found in (train, test):
        random.Random(0).shuffle(found)
    text = "SCAN, length split: up to 22 actions in training, 24 to 48 in the test"
    return Task(train[200:], train[:200], test[:400], 12, 52, text)


def copy():
    """Returns sources of distinct words, whose targets are the same words in their order.

    Of 260 words, 1 to 12 in training, 13 to 24 in the test. No word comes twice, so each can be
    found by the one before it; that needs relative positions in the encoder, and no count.
    """
    rng = random.Random(0)
    words = [letter + str(digit) for letter in _LETTERS for digit in range(10)]

    def pairs(number, shortest, longest):
        found = (rng.sample(words, rng.randint(shortest, longest)) for _ in range(number))
        return [(" ".join(row), " ".join(row)) for row in found]

    text = "copies of distinct words: 1 to 12 in training, 13 to 24 in the test"
    return Task(pairs(16_000, 1, 12), pairs(200, 1, 12), pairs(400, 13, 24), 26, 28, text)


def write(task, folder):
    """Writes `train.tsv`, `valid.tsv` and `test.tsv`; returns their paths by these names."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    paths = {}
    for name in ("train", "valid", "test"):
        paths[name] = folder / f"{name}.tsv"
        lines = (f"{source}\t{target}\n" for source, target in getattr(task, name))
        replaced_text(paths[name], "".join(lines))
    return paths


def _read(path):
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"SCAN's file must be readable. Received: {path}: {error}") from None
    found = []
    for number, line in enumerate(lines, 1):
        match = _LINE.fullmatch(line)
        if match is None:
            raise ValueError(
                "A line of SCAN must be `IN: command OUT: actions`. "
                f"Received: {path}:{number}: {line!r:.80}"
            )
        actions = (_ACTIONS.get(word, word.removeprefix("I_")) for word in match[2].split())
        found.append((match[1], " ".join(actions)))
    return found
