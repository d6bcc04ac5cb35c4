"""Batches of rows of different lengths: every row once, in a new order, hardly any padding."""

import numpy as np
import pytest

from keras_tupe.data import Padded, tf_dataset, tf_evaluation_dataset

RANDOM = np.random.default_rng(0)
LENGTHS = RANDOM.integers(1, 90, 403)
TOKENS = [np.full(length, number + 5) for number, length in enumerate(LENGTHS)]
LABELS = np.arange(403, dtype="int32")


def rows(batch_size=8, seed=3, **kwargs):
    inputs = {"token_ids": TOKENS}
    return Padded(inputs, LABELS, pad_id=0, batch_size=batch_size, seed=seed, **kwargs)


def epoch_of(made, epoch):
    steps = range(epoch * made.num_batches, (epoch + 1) * made.num_batches)
    return [made.batch(step) for step in steps]


@pytest.mark.parametrize("batch_size", [1, 8, 31, 500])
def test_an_epoch_has_every_row_once_and_rows_that_fill_up_have_no_weight(batch_size):
    made = rows(batch_size)
    for epoch in range(2):
        batches = epoch_of(made, epoch)
        weights = np.concatenate([weights for _, _, weights in batches])
        labels = np.concatenate([labels for _, labels, _ in batches])
        assert sorted(labels[weights > 0]) == LABELS.tolist()
        assert weights.sum() == len(made)
        assert {len(w) for _, _, w in batches} == {batch_size}


def test_rows_keep_their_tokens_and_the_mask_marks_them():
    for inputs, labels, weights in epoch_of(rows(), 0):
        arrays = inputs["token_ids"], inputs["padding_mask"]
        for ids, mask, label, weight in zip(*arrays, labels, weights, strict=True):
            length = int(mask.sum())
            assert length == (LENGTHS[label] if weight else 0)
            assert (mask[:length] == 1).all()
            assert not mask[length:].any()
            assert (ids[:length] == label + 5).all()
            assert not ids[length:].any()


def test_batches_are_hardly_wider_than_their_rows():
    made = rows()
    batches = [inputs["padding_mask"] for inputs, _, _ in epoch_of(made, 0)]
    used = sum(mask.sum() for mask in batches) / sum(mask.size for mask in batches)
    plain = LENGTHS.mean() / LENGTHS.max()
    assert used > 0.8 > plain + 0.2
    assert max(mask.shape[1] for mask in batches) == LENGTHS.max()


def test_orders_differ_by_epoch_and_seed_and_any_step_comes_alone():
    made = rows()
    first, second = ([labels for _, labels, _ in epoch_of(made, epoch)] for epoch in (0, 1))
    other = [labels for _, labels, _ in epoch_of(rows(seed=4), 0)]
    assert not np.array_equal(np.concatenate(first), np.concatenate(second))
    assert not np.array_equal(np.concatenate(first), np.concatenate(other))
    widths = [inputs["token_ids"].shape[1] for inputs, _, _ in epoch_of(made, 0)]
    assert widths != sorted(widths)  # lengths come in random order too
    step = made.num_batches + 7
    np.testing.assert_array_equal(rows().batch(step)[1], second[7])


def test_evaluation_has_every_row_once_and_says_which():
    made = rows(8)
    found = []
    for step in range(made.num_evaluation_batches):
        _, labels, weights = made.evaluation_batch(step)
        numbers = made.evaluation_rows(step)
        np.testing.assert_array_equal(labels[weights > 0], numbers)
        found += numbers.tolist()
    assert sorted(found) == LABELS.tolist()
    assert found != LABELS.tolist()


def test_parts_of_workers_are_the_batch():
    made = rows(8)
    for step in (0, 5, made.num_batches - 1):
        parts = [made.shard(index, 4).batch(step) for index in range(4)]
        whole = made.batch(step)
        for place in (1, 2):
            np.testing.assert_array_equal(np.concatenate([p[place] for p in parts]), whole[place])
        np.testing.assert_array_equal(
            np.concatenate([part[0]["token_ids"] for part in parts]), whole[0]["token_ids"]
        )


def test_segments_and_labels_of_several_numbers_go_along():
    labels = np.stack([LABELS, LABELS + 1], axis=1)
    segments = [np.arange(len(row)) % 2 for row in TOKENS]
    inputs = {"token_ids": TOKENS, "segment_ids": segments}
    made = Padded(inputs, labels, pad_id=0, batch_size=5, seed=0)
    inputs, labels, weights = made.batch(3)
    assert labels.shape == weights.shape == (5, 2)
    for ids, places, (label, _) in zip(
        inputs["token_ids"], inputs["segment_ids"], labels, strict=True
    ):
        length = LENGTHS[label]
        assert places[:length].tolist() == segments[label].tolist()
        assert not places[length:].any()
        assert ids[0] == label + 5


def test_tf_data_gives_the_same_batches():
    made = rows(8)
    for number, (inputs, labels, weights) in enumerate(tf_dataset(made, 3, 4)):
        expected = made.batch(3 + number)
        np.testing.assert_array_equal(inputs["token_ids"], expected[0]["token_ids"])
        np.testing.assert_array_equal(labels, expected[1])
        np.testing.assert_array_equal(weights, expected[2])
    dataset = tf_evaluation_dataset(made)
    assert dataset.element_spec[0]["token_ids"].shape.as_list() == [8, None]
    assert sum(float(weights.numpy().sum()) for _, _, weights in dataset) == len(made)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"inputs": {"token_ids": []}}, "0 rows"),
        ({"inputs": {"token_ids": [[5], []]}}, "the shortest of 0 tokens"),
        ({"labels": [0]}, "1 labels, 2 rows"),
        ({"inputs": {"token_ids": [[5, 6], [7]], "segment_ids": [[0], [0]]}}, "of another length"),
        ({"batch_size": 0}, "batch_size=0"),
        ({"seed": -1}, "seed=-1"),
    ],
)
def test_what_does_not_fit_is_refused(arguments, message):
    good = {"inputs": {"token_ids": [[5, 6], [7]]}, "labels": [0, 1], "pad_id": 0}
    good |= {"batch_size": 2, "seed": 0}
    with pytest.raises(ValueError, match=message):
        Padded(**{**good, **arguments})


def test_there_is_no_batch_before_the_first_or_after_the_last():
    made = rows(8)
    with pytest.raises(ValueError, match="step=-1"):
        made.batch(-1)
    with pytest.raises(ValueError, match="step=51"):
        made.evaluation_batch(51)
    with pytest.raises(ValueError, match="count=3"):
        made.shard(0, 3)
