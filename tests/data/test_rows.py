"""Batches by step: any step at once, every row once per epoch, new masks in every epoch."""

import itertools

import numpy as np
import pytest

from keras_tupe.data.masking import Masking
from keras_tupe.data.rows import Rows

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


def assert_equal(batch, other):
    (inputs, *targets), (other_inputs, *other_targets) = batch, other
    assert inputs.keys() == other_inputs.keys()
    for key in inputs:
        np.testing.assert_array_equal(inputs[key], other_inputs[key])
    for array, other_array in zip(targets, other_targets, strict=True):
        np.testing.assert_array_equal(array, other_array)


def test_a_seek_equals_a_walk():
    walked = list(itertools.islice(make_rows().batches(), 30))
    for step in (29, 3, 17, 0):
        assert_equal(make_rows().batch(step), walked[step])
    resumed = make_rows().batches(start_step=12)
    for batch in walked[12:20]:
        assert_equal(next(resumed), batch)


def test_every_epoch_has_each_row_once_in_a_new_order():
    numbers = row_numbers(itertools.islice(make_rows().batches(), 23)).reshape(5, 23)
    np.testing.assert_array_equal(np.sort(numbers, axis=1), np.tile(np.arange(23), (5, 1)))
    assert len({tuple(epoch) for epoch in numbers}) == 5


def test_a_row_is_masked_differently_in_every_epoch():
    batches = list(itertools.islice(make_rows().batches(), 23))
    first_row = row_numbers(batches) == 0
    positions = np.concatenate([inputs["mask_positions"] for inputs, _, _ in batches])[first_row]
    assert len(positions) == 5
    assert len(np.unique(positions, axis=0)) == 5


def test_examples_do_not_depend_on_the_batch_size():
    small, large = make_rows(batch_size=5), make_rows(batch_size=10)
    for step in range(7):
        inputs, labels, weights = (
            {key: np.concatenate([a[key], b[key]]) for key in a}
            if isinstance(a, dict)
            else np.concatenate([a, b])
            for a, b in zip(small.batch(2 * step), small.batch(2 * step + 1), strict=True)
        )
        assert_equal((inputs, labels, weights), large.batch(step))


def test_a_batch_may_be_larger_than_the_corpus():
    numbers = row_numbers([make_rows(num_rows=3, batch_size=8).batch(1)])
    assert len(numbers) == 8
    assert np.bincount(numbers).max() <= 4  # examples 8 to 15 touch four epochs of three rows


def test_another_seed_gives_another_order():
    assert row_numbers([make_rows(seed=1).batch(0)]).tolist() != (
        row_numbers([make_rows(seed=2).batch(0)]).tolist()
    )


def test_evaluation_sees_every_row_once_and_always_the_same():
    rows = make_rows()
    batches = list(rows.evaluation_batches())
    assert len(batches) == 5
    np.testing.assert_array_equal(row_numbers(batches)[:23], np.arange(23))
    rows.batch(100)
    for batch, again in zip(batches, rows.evaluation_batches(), strict=True):
        assert_equal(batch, again)


def test_the_last_evaluation_batch_is_filled_up_with_padding_of_no_weight():
    *_, (inputs, labels, weights) = make_rows().evaluation_batches()
    assert inputs["token_ids"].shape == inputs["padding_mask"].shape == (5, LENGTH)
    assert inputs["mask_positions"].shape == labels.shape == weights.shape == (5, 4)
    assert weights[:3].any(axis=1).all()
    assert not weights[3:].any()
    assert not inputs["padding_mask"][3:].any()


def test_evaluation_masks_do_not_depend_on_the_batch_size():
    def all_tokens(batch_size):
        batches = make_rows(batch_size=batch_size).evaluation_batches()
        return np.concatenate([inputs["token_ids"] for inputs, _, _ in batches])[:23]

    np.testing.assert_array_equal(all_tokens(5), all_tokens(23))


def test_ids_outside_the_vocabulary_are_refused_at_the_door():
    token_ids = np.full((7, 11), 5)
    token_ids[3, 2] = 200
    with pytest.raises(ValueError, match=r"another vocabulary.*Received: token_ids\[3, 2\]=200$"):
        Rows(token_ids, MASKING, batch_size=2, seed=0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"batch_size": 0}, "`batch_size` must be at least 1. Received: batch_size=0"),
        ({"seed": -1}, "Received: seed=-1"),
    ],
)
def test_impossible_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Rows(np.full((7, 11), 5), MASKING, **{"batch_size": 2, "seed": 0} | arguments)


def test_a_negative_step_is_refused():
    with pytest.raises(ValueError, match=r"at least 0\. Received: step=-1"):
        make_rows().batch(-1)
