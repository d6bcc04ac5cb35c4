"""The letter that is there most often, which needs no position."""

import numpy as np

from training.studies.probe.tasks._task import AT_CLS, Task, random_letters

_SHARE = 0.25  # of the letters that are one, besides those that are it by chance


def draw(rng, length, first):
    """Returns letters, a quarter of them and more the same one."""
    body = random_letters(rng, length)
    body[rng.random(length) < _SHARE] = random_letters(rng, 1)[0]
    return None, body


def answers(number, body, first):
    """Returns the letter; nothing if two are there as often."""
    letters, counts = np.unique(body, return_counts=True)
    most = letters[counts == counts.max()]
    return [(AT_CLS, int(most[0]))] if len(most) == 1 else []


TASK = Task(summary="the most frequent letter", draw=draw, answers=answers)
