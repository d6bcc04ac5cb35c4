"""The marked letter that comes first."""

import numpy as np

from training.studies.probe.tasks._task import AT_CLS, Task, is_marked, random_letters, with_marks


def draw(rng, length, first):
    """Returns letters, two of them marked."""
    positions = first + rng.choice(length - first, 2, replace=False)
    return None, with_marks(random_letters(rng, length), positions)


def answers(number, body, first):
    """Returns the first of the two; nothing if they are the same letter."""
    left, right = body[np.flatnonzero(is_marked(body))]
    return [(AT_CLS, int(left))] if left != right else []


TASK = Task(summary="the first of two marked letters", draw=draw, answers=answers)
