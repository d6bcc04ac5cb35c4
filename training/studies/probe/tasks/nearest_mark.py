"""The marked letter that is nearest, asked at every other letter."""

import numpy as np

from training.studies.probe.tasks._task import Task, is_marked, random_letters, with_marks

_LETTERS_FOR_A_MARK = 8


def draw(rng, length, first):
    """Returns letters of which about one in eight has a mark, two at least from `first` on."""
    count = max(2, (length - first) // _LETTERS_FOR_A_MARK)
    positions = first + rng.choice(length - first, count, replace=False)
    before = rng.choice(first, first // _LETTERS_FOR_A_MARK, replace=False) if first else []
    return None, with_marks(
        random_letters(rng, length), np.concatenate([positions, before]).astype(int)
    )


def answers(number, body, first):
    """Returns for each letter the nearest marked one; two as near must be the same."""
    marks = np.flatnonzero(is_marked(body))
    found = []
    for position in range(first, len(body)):
        distances = abs(marks - position)
        near = marks[distances == distances.min()]
        if near[0] != position and near[0] >= first and len(set(body[near])) == 1:
            found.append((position, int(body[near[0]])))
    return found


TASK = Task(summary="the nearest marked letter", draw=draw, answers=answers)
