"""The tokens of probes: special ones, numbers, tasks, letters, and letters with a mark."""

import dataclasses

PAD, CLS, SEP, NO_NUMBER = range(4)
LETTERS = 16
HEADER = 3  # tokens before the body of a row: [CLS], the task, its number
FRAME = HEADER + 1  # and [SEP] behind it
AT_CLS = -HEADER  # where [CLS] stands, counted from the first token of the body
_FIRST_LETTER = 4
_FIRST_NUMBER = _FIRST_LETTER + 2 * LETTERS


@dataclasses.dataclass(frozen=True)
class Vocabulary:
    """Token ids of probes of rows that are at most so long in training.

    Attributes:
        length: tokens of the longest row of training, which is also the largest number.
        num_tasks: tasks that have a token.
    """

    length: int
    num_tasks: int

    @property
    def size(self):
        """Number of token ids."""
        return self.task(self.num_tasks)

    def task(self, index):
        """Returns the token that names a task."""
        return number(self.length + 1) + index


def letter(index):
    """Returns the token of a letter, from 0 to `LETTERS - 1`; an array of them for an array."""
    return _FIRST_LETTER + index


def marked(token):
    """Returns the token of the same letter with a mark."""
    return token + LETTERS


def is_marked(tokens):
    """Returns which tokens are letters with a mark."""
    return (tokens >= _FIRST_LETTER + LETTERS) & (tokens < _FIRST_NUMBER)


def number(value):
    """Returns the token of a number, 1 or more."""
    return _FIRST_NUMBER + value - 1


def value_of(token):
    """Returns the number that a token names."""
    return token - _FIRST_NUMBER + 1
