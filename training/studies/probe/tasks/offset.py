"""The letter some positions further on, asked at every letter."""

from training.studies.probe.tasks._task import Task, random_letters

OFFSETS = (-2, -1, 1, 2)


def draw(rng, length, first):
    """Returns the number of an offset, from 1, and letters."""
    return int(rng.integers(1, len(OFFSETS) + 1)), random_letters(rng, length)


def answers(number, body, first):
    """Returns for each letter the one at the offset, where there is one."""
    offset = OFFSETS[number - 1]
    start, end = max(first, first - offset), min(len(body), len(body) - offset)
    return [(position, int(body[position + offset])) for position in range(start, end)]


TASK = Task(summary="the letter k positions further on", draw=draw, answers=answers)
