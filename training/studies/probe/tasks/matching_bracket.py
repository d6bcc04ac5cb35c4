"""The bracket that belongs to this one, asked at every bracket.

Plain letters open and marked letters close; any letter may close any other, so that only the
order of the brackets tells which belong together.
"""

import numpy as np

from training.studies.probe.tasks._task import Task, is_marked, marked, random_letters

_DEEPEST = 3


def draw(rng, length, first):
    """Returns brackets; what is before `first` is closed there, or one position later."""
    start = _start(first)
    closes = np.concatenate([_closes(rng, start), _closes(rng, length - start)])
    body = random_letters(rng, length)
    return None, np.where(closes, marked(body), body)


def answers(number, body, first):
    """Returns for each bracket from `first` on its partner."""
    opened, found = [], []
    for position, closes in enumerate(is_marked(body)):
        if not closes:
            opened.append(position)
            continue
        partner = opened.pop()
        if partner >= first:
            found += [(partner, int(body[position])), (position, int(body[partner]))]
    return sorted(found)


def shuffle(rng, body, first):
    """Returns the same brackets, nested otherwise from `first` on."""
    start = _start(first)
    rest = body[start:]
    closing = is_marked(rest)
    closes = _closes(rng, len(rest))
    other = np.empty_like(rest)
    other[~closes] = rng.permutation(rest[~closing])
    other[closes] = rng.permutation(rest[closing])
    return np.concatenate([body[:start], other])


def _start(first):
    return first + first % 2


def _closes(rng, length):
    """Returns which of so many brackets close, at most three deep; the number must be even."""
    depth, found = 0, np.zeros(length, bool)
    for position, wish in enumerate(rng.random(length) < 0.5):
        left = length - position
        found[position] = depth > 0 and (wish or depth == min(_DEEPEST, left))
        depth += -1 if found[position] else 1
    return found


TASK = Task(
    summary="the bracket that belongs to this one", draw=draw, answers=answers, shuffle=shuffle
)
