"""The letter at a position that a number names."""

from training.studies.probe.tasks._task import AT_CLS, Task, random_letters, shuffled


def draw(rng, length, first):
    """Returns a position, counted from 1, and letters; a position of training in longer rows."""
    last = first - 1 if first else length
    return int(rng.integers(1, last + 1)), random_letters(rng, length)


def answers(number, body, first):
    """Returns the letter at the position."""
    return [(AT_CLS, int(body[number - 1]))]


TASK = Task(
    summary="the letter at position p",
    draw=draw,
    answers=answers,
    shuffle=lambda rng, body, first: shuffled(rng, body, 0),
)
