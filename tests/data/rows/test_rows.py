"""Batches by step: any step at once, every row once per epoch, in a new order."""

import tracemalloc

import numpy as np
import pytest
from batch_arrays import arrays_of, assert_same, joined

from keras_tupe.data import Masking, Rows

MASKING = Masking(vocabulary_size=200, mask_id=4, pad_id=0, special_ids=(1, 2, 3), rate=0.3)
LENGTH = 13


def make_rows(num_rows=23, batch_size=5, seed=9):
    """Rows of which the last token, never masked, is the row's number: 100, 101, ..."""
    token_ids = np.random.default_rng(1).integers(5, 100, (num_rows, LENGTH))
    token_ids[:, -1] = 100 + np.arange(num_rows)
    masking = Masking(200, mask_id=4, pad_id=0, special_ids=range(100, 200), rate=0.3)
    return Rows(token_ids, masking, batch_size=batch_size, seed=seed)


def row_numbers(batches):
    return np.concatenate([batch[0]["token_ids"][:, -1] - 100 for batch in batches])


def test_every_epoch_has_each_row_once_in_a_new_order():
    numbers = row_numbers(map(make_rows().batch, range(23))).reshape(5, 23)
    np.testing.assert_array_equal(np.sort(numbers, axis=1), np.tile(np.arange(23), (5, 1)))
    assert len({tuple(epoch) for epoch in numbers}) == 5
    assert row_numbers([make_rows(seed=1).batch(0)]).tolist() != numbers[0, :5].tolist()


def test_a_batch_may_be_larger_than_the_corpus():
    numbers = row_numbers([make_rows(num_rows=3, batch_size=8).batch(1)])
    assert len(numbers) == 8
    assert np.bincount(numbers).max() <= 4  # examples 8 to 15 touch four epochs of three rows


class Archive:
    """Rows that are made when they are asked for: ids 5 + number % 90, and none kept."""

    length = LENGTH

    def __init__(self, size):
        self.size = size
        self.asked = []

    def __len__(self):
        return self.size

    def __getitem__(self, indices):
        self.asked.append(indices)
        return np.repeat(5 + indices % 90, LENGTH).reshape(-1, LENGTH)


def test_a_source_of_rows_gives_the_batches_of_an_array():
    archive = Archive(23)
    arguments = {"batch_size": 5, "seed": 9}
    from_source = Rows(archive, MASKING, **arguments)
    from_array = Rows(archive[np.arange(23)], MASKING, **arguments)
    assert len(from_source) == len(from_array) == 23
    assert from_source.length == from_array.length == LENGTH
    for step in range(12):
        assert_same(arrays_of(from_source.batch(step)), arrays_of(from_array.batch(step)))
    evaluated = (joined(rows.evaluation_batches()) for rows in (from_source, from_array))
    assert_same(*evaluated)


def test_any_step_of_a_hundred_million_rows_costs_the_same():
    archive = Archive(10**8)
    tracemalloc.start()
    rows = Rows(archive, MASKING, batch_size=64, seed=1)
    for step in (0, 10**6, 10**12, 10**15):
        rows.batch(step)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4e6  # bytes; an order of the rows would have 8e8
    numbers = np.concatenate(archive.asked)
    assert len(np.unique(numbers)) == len(numbers) == 256
    assert numbers.max() > 9e7


def test_ids_of_a_source_are_checked_when_they_are_read_and_arguments_at_once():
    class Wrong(Archive):
        def __getitem__(self, indices):
            return np.full((len(indices), LENGTH), 200)

    rows = Rows(Wrong(7), MASKING, batch_size=2, seed=0)
    with pytest.raises(ValueError, match=r"another vocabulary.*Received: .*=200$"):
        rows.batch(0)
    with pytest.raises(ValueError, match="must have at least one row. Received: "):
        Rows(Archive(0), MASKING, batch_size=2, seed=0)
    for arguments in ({"batch_size": 0, "seed": 0}, {"batch_size": 2, "seed": -1}):
        with pytest.raises(ValueError, match="Received: (batch_size=0|seed=-1)"):
            Rows(np.full((7, 11), 5), MASKING, **arguments)


def test_a_worker_may_divide_its_part_among_its_devices():
    rows = make_rows(batch_size=12)
    devices = [rows.shard(index, 2).shard(device, 3) for index in range(2) for device in range(3)]
    assert_same(joined(device.batch(8) for device in devices), arrays_of(rows.batch(8)))


@pytest.mark.parametrize(
    ("index", "count", "message"),
    [
        (0, 4, r"multiple of the number of workers.*Received: batch_size=6, count=4$"),
        (0, 0, r"Received: batch_size=6, count=0$"),
        (3, 3, r"from 0 to 2\. Received: index=3$"),
        (-1, 3, r"Received: index=-1$"),
    ],
)
def test_workers_that_cannot_be_are_refused(index, count, message):
    with pytest.raises(ValueError, match=message):
        make_rows(batch_size=6).shard(index, count)


@pytest.mark.parametrize("step", [-1, 5, 6])
def test_there_is_no_batch_before_the_first_and_none_to_evaluate_beyond_the_rows(step):
    with pytest.raises(ValueError, match=f"Received: step={step}$"):
        make_rows().evaluation_batch(step)
    if step < 0:
        with pytest.raises(ValueError, match=r"an integer >= 0\. Received: step=-1"):
            make_rows().batch(step)
