"""Batches of pairs: every pair once, each side hardly wider than its rows, labels one ahead."""

import numpy as np
import pytest

from keras_tupe.data import Padded, tf_dataset

RANDOM = np.random.default_rng(0)
SIZES = RANDOM.integers(2, 70, (203, 2))
SOURCES = [np.full(length, number + 5) for number, (length, _) in enumerate(SIZES)]
TARGETS = [np.arange(length) * 300 + number for number, (_, length) in enumerate(SIZES)]


def pairs(batch_size=8, seed=3):
    return Padded.of_pairs(SOURCES, TARGETS, pad_id=0, batch_size=batch_size, seed=seed)


def epoch_of(made, epoch):
    steps = range(epoch * made.num_batches, (epoch + 1) * made.num_batches)
    return [made.batch(step) for step in steps]


@pytest.mark.parametrize("batch_size", [1, 8, 500])
def test_an_epoch_has_every_pair_once_with_its_target_one_ahead(batch_size):
    made, seen = pairs(batch_size), []
    for inputs, labels, weights in epoch_of(made, 1):
        assert len(labels) == batch_size
        for *arrays, label, weight in zip(*inputs.values(), labels, weights, strict=True):
            source, source_mask, read, read_mask = arrays
            if not weight.any():  # fills the batch up
                assert not source_mask.any()
                continue
            number = int(source[0]) - 5
            seen.append(number)
            length, target = SIZES[number]
            assert source_mask.sum() == length
            assert (source[:length] == number + 5).all()
            np.testing.assert_array_equal(read[: target - 1], TARGETS[number][:-1])
            np.testing.assert_array_equal(label[: target - 1], TARGETS[number][1:])
            np.testing.assert_array_equal(read_mask, np.arange(len(read)) < target - 1)
            np.testing.assert_array_equal(weight, read_mask)
            assert not source[length:].any()
            assert not label[target - 1 :].any()
    assert sorted(seen) == list(range(203))


def test_sides_are_as_wide_as_the_first_width_that_holds_them():
    for inputs, _, _ in epoch_of(pairs(), 0):
        for place, side in enumerate(("encoder", "decoder")):
            longest = inputs[f"{side}_padding_mask"].sum(axis=1).max()
            width = inputs[f"{side}_token_ids"].shape[1]
            limit = SIZES[:, place].max() - place  # the decoder does not read the last token
            assert width == min([x for x in (8, 16, 32, 64, limit) if x >= longest])


def test_parts_of_workers_are_the_batch_and_evaluation_tells_the_pairs():
    made = pairs()
    whole, labels, weights = made.batch(5)
    parts = [made.shard(index, 2).batch(5) for index in range(2)]
    for name, rows in whole.items():
        np.testing.assert_array_equal(np.concatenate([part[0][name] for part in parts]), rows)
    np.testing.assert_array_equal(np.concatenate([part[1] for part in parts]), labels)
    np.testing.assert_array_equal(np.concatenate([part[2] for part in parts]), weights)
    for step in range(made.num_evaluation_batches):
        inputs, _, _ = made.evaluation_batch(step)
        numbers = made.evaluation_rows(step)
        assert (inputs["encoder_token_ids"][: len(numbers), 0] == numbers + 5).all()


def test_a_data_set_has_the_same_batches(tensorflow):
    made = pairs()
    for step, (inputs, labels, weights) in enumerate(tf_dataset(made, 2, 3), 2):
        expected = made.batch(step)
        assert set(inputs) == set(expected[0])
        for name, rows in expected[0].items():
            np.testing.assert_array_equal(inputs[name], rows)
        np.testing.assert_array_equal(labels, expected[1])
        np.testing.assert_array_equal(weights, expected[2])


@pytest.mark.parametrize(
    ("sources", "targets", "message"),
    [
        ([[1]], [[1, 2], [1, 2]], "as many targets as sources"),
        ([], [], "Received: 0 sources"),
        ([[]], [[1, 2]], "1 sources, the shortest of 0 tokens"),
        ([[1]], [[1]], "1 targets, the shortest of 1"),
    ],
)
def test_what_are_no_pairs_is_refused(sources, targets, message):
    with pytest.raises(ValueError, match=message):
        Padded.of_pairs(sources, targets, pad_id=0, batch_size=2, seed=0)
