"""How far the two marked letters are apart, asked at both."""

import numpy as np

from training.probe.tasks._task import Task, random_letters, with_marks
from training.probe.vocabulary import is_marked, number

FARTHEST = 8


def draw(rng, length, first):
    """Returns letters, two of them marked, from 1 to 8 positions apart."""
    distance = int(rng.integers(1, FARTHEST + 1))
    left = int(rng.integers(first, length - distance))
    return None, with_marks(random_letters(rng, length), [left, left + distance])


def answers(_, body, first):
    """Returns the distance, a number, at both marks; nothing if it is too far."""
    left, right = (int(position) for position in np.flatnonzero(is_marked(body)))
    if right - left > FARTHEST:
        return []
    return [(left, number(right - left)), (right, number(right - left))]


TASK = Task(summary="the distance of two marks", draw=draw, answers=answers)
