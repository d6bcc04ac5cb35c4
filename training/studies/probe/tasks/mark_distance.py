"""How far the marked letter is, asked at every other letter that is not too far."""

import numpy as np

from training.studies.probe.tasks._task import Task, is_marked, number, random_letters, with_marks

FARTHEST = 8


def draw(rng, length, first):
    """Returns letters, one of them marked."""
    return None, with_marks(random_letters(rng, length), [int(rng.integers(first, length))])


def answers(_, body, first):
    """Returns the distance, a number, at the letters from 1 to 8 positions away."""
    mark = int(np.flatnonzero(is_marked(body))[0])
    start, end = max(first, mark - FARTHEST), min(len(body), mark + FARTHEST + 1)
    return [(at, number(abs(at - mark))) for at in range(start, end) if at != mark]


TASK = Task(summary="the distance of the marked letter", draw=draw, answers=answers)
