"""A run in one piece, and the same in several: what is done after which step."""

import numpy as np
import pytest
from trainer_cases import compiled, linear_model, linear_rows

from keras_tupe.trainer import LinearWarmupDecay, Loop


def batches(start, count):
    return [linear_rows(4, seed=step) for step in range(start, start + count)]


def run(steps_of_calls, trainer, did):
    """Runs to step 10, asked to end at given steps; says what was done, and gives the rows."""
    rows, losses, step = [], (), 0
    for end in steps_of_calls:
        loop = Loop(trainer, batches, 10, step, losses)
        loop.after(lambda loop=loop: rows.append(loop.row(LinearWarmupDecay(1.0, 20))), every=4)
        loop.after(lambda loop=loop: did.append(("save", loop.step)), every=5, at=(3,))
        loop.after(lambda end=end: setattr(trainer, "stop_training", end < 10), at=(end,))
        loop.after(lambda loop=loop: did.append(("test", loop.step)), every=2)
        loop.after(lambda loop=loop: did.append(("never", loop.step)), every=0)
        assert loop.run() == (end == 10)
        assert loop.step == end
        step, losses = loop.step, loop.losses
    assert loop.run(), "there is nothing left to do"
    return rows


def test_what_is_due_is_done_once_in_its_order_however_often_a_run_is_stopped():
    one, other = compiled(linear_model()), compiled(linear_model())
    whole, parts = [], []
    rows = run([10], one, whole)
    assert whole == [
        ("test", 2),
        ("save", 3),
        ("test", 4),
        ("save", 5),
        ("test", 6),
        ("test", 8),
        ("save", 10),
        ("test", 10),
    ]
    assert [row["step"] for row in rows] == [4, 8, 10]
    assert [row["learning_rate"] for row in rows] == pytest.approx([0.85, 0.65, 0.55])
    assert run([3, 6, 10], other, parts) == rows
    assert parts == [one for one in whole if one != ("test", 6)]  # it was stopped before
    for ours, theirs in zip(one.model.get_weights(), other.model.get_weights(), strict=True):
        np.testing.assert_array_equal(ours, theirs)
