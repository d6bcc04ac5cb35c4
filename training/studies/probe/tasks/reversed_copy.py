"""The letter as far from the end as this one is from the beginning, asked at every letter."""

from training.studies.probe.tasks._task import Task, random_letters


def draw(rng, length, first):
    """Returns letters."""
    return None, random_letters(rng, length)


def answers(number, body, first):
    """Returns for position i of n, from 0, the letter at n - 1 - i."""
    last = len(body) - 1
    return [(position, int(body[last - position])) for position in range(first, len(body))]


TASK = Task(summary="the body from its end to its beginning", draw=draw, answers=answers)
