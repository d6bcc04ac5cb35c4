"""Batches of rows of different lengths: every row once, in a new order, hardly any padding."""

import itertools

import numpy as np
import pytest
from batch_arrays import arrays_of, assert_same, joined

from keras_tupe.data import Padded, tf_dataset

NUMBER = 403
SIZES = np.random.default_rng(0).integers(2, 90, (NUMBER, 2))
TOKENS = [np.full(length, number + 5) for number, (length, _) in enumerate(SIZES)]
SEGMENTS = [np.arange(len(row)) % 2 for row in TOKENS]
TARGETS = [np.arange(length) * 500 + number + 5 for number, (_, length) in enumerate(SIZES)]
LABELS = np.stack([np.arange(NUMBER), np.arange(NUMBER) + 1], axis=1)
INPUTS = {"token_ids": TOKENS, "segment_ids": SEGMENTS}


def rows(batch_size=8, seed=3):
    return Padded(INPUTS, LABELS, pad_id=0, batch_size=batch_size, seed=seed)


def pairs(batch_size=8, seed=3):
    return Padded.of_pairs(TOKENS, TARGETS, pad_id=0, batch_size=batch_size, seed=seed)


both_kinds = pytest.mark.parametrize("make", [rows, pairs])


def epoch_of(made, epoch):
    steps = range(epoch * made.num_batches, (epoch + 1) * made.num_batches)
    return [made.batch(step) for step in steps]


def numbers_of(batch):
    """Returns the numbers of a batch's rows, without those that fill it up."""
    inputs, _, weights = batch
    first = inputs.get("token_ids", inputs.get("encoder_token_ids"))[:, 0]
    return (first[weights[:, 0] > 0] - 5).tolist()


def widths_of(made, epoch=0):
    return [[x.shape[1] for x in inputs.values()] for inputs, _, _ in epoch_of(made, epoch)]


@both_kinds
@pytest.mark.parametrize("batch_size", [1, 8, 31, 500])
def test_an_epoch_has_every_row_once_and_rows_that_fill_up_have_no_weight(make, batch_size):
    made = make(batch_size)
    evaluated = [made.evaluation_batch(step) for step in range(made.num_evaluation_batches)]
    for batches in (epoch_of(made, 0), epoch_of(made, 1), evaluated):
        assert {len(labels) for _, labels, _ in batches} == {batch_size}
        assert sorted(itertools.chain(*map(numbers_of, batches))) == list(range(NUMBER))
        for name, array in arrays_of(batches[-1]).items():
            filled = array[len(numbers_of(batches[-1])) :]
            assert not filled.any(), name
    for step, batch in enumerate(evaluated):
        assert made.evaluation_rows(step).tolist() == numbers_of(batch)


def expected(make, number):
    """Returns what the arrays of a batch have of a row, without what fills them up."""
    if make is rows:
        texts = {"token_ids": TOKENS[number]}
        targets = LABELS[number], [1, 1]
    else:  # a target is read without its end, and written one ahead
        texts = {"encoder_token_ids": TOKENS[number], "decoder_token_ids": TARGETS[number][:-1]}
        targets = TARGETS[number][1:], np.ones(len(TARGETS[number]) - 1)
    masks = {name.replace("token_ids", "padding_mask"): 0 * x + 1 for name, x in texts.items()}
    segments = {"segment_ids": SEGMENTS[number]} if make is rows else {}
    return arrays_of((texts | masks | segments, *targets))


@both_kinds
def test_rows_keep_their_tokens_segments_and_labels(make):
    for batch in epoch_of(make(), 1):
        found = arrays_of(batch)
        for place, number in enumerate(numbers_of(batch)):
            wanted = expected(make, number)
            assert found.keys() == wanted.keys()
            for name, array in wanted.items():
                np.testing.assert_array_equal(found[name][place, : len(array)], array, name)
                assert not found[name][place, len(array) :].any(), name


def test_batches_are_hardly_wider_than_their_rows():
    batches = [inputs["padding_mask"] for inputs, _, _ in epoch_of(rows(), 0)]
    used = sum(mask.sum() for mask in batches) / sum(mask.size for mask in batches)
    plain = SIZES[:, 0].mean() / SIZES[:, 0].max()
    assert used > 0.8 > plain + 0.2
    assert max(mask.shape[1] for mask in batches) == SIZES[:, 0].max()


def test_sides_are_as_wide_as_the_first_width_that_holds_them():
    for inputs, _, _ in epoch_of(pairs(), 0):
        for place, side in enumerate(("encoder", "decoder")):
            longest = inputs[f"{side}_padding_mask"].sum(axis=1).max()
            width = inputs[f"{side}_token_ids"].shape[1]
            limit = SIZES[:, place].max() - place  # the decoder does not read the last token
            assert width == min([x for x in (8, 16, 32, 64, limit) if x >= longest])


@both_kinds
def test_orders_differ_by_epoch_and_seed_and_any_step_comes_alone(make):
    made = make()
    orders = [[numbers_of(b) for b in epoch_of(made, epoch)] for epoch in (0, 1)]
    orders.append([numbers_of(batch) for batch in epoch_of(make(seed=4), 0)])
    assert orders[0] != orders[1] != orders[2] != orders[0]
    assert widths_of(made) != sorted(widths_of(made))  # lengths come in random order too
    step = made.num_batches + 7
    assert_same(arrays_of(make().batch(step)), arrays_of(epoch_of(made, 1)[7]))


@both_kinds
def test_parts_of_workers_are_the_batch(make):
    made = make()
    for step in (0, 5, made.num_batches - 1):
        parts = joined(made.shard(index, 4).batch(step) for index in range(4))
        assert_same(parts, arrays_of(made.batch(step)))


@both_kinds
def test_tf_data_gives_the_same_batches(make, tensorflow):
    made = make()
    for step, element in enumerate(tf_dataset(made, 3, 4), 3):
        assert_same(arrays_of(element), arrays_of(made.batch(step)))
    specs = tf_dataset(made).element_spec[0].values()
    assert {tuple(spec.shape) for spec in specs} == {(8, None)}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"inputs": {"token_ids": []}}, "0 rows"),
        ({"inputs": {"token_ids": [[5], []]}}, "the shortest of 0 tokens"),
        ({"labels": [0]}, "1 labels, 2 rows"),
        (
            {"inputs": {"token_ids": [[5, 6], [7]], "segment_ids": [[0], [0]]}},
            "those of `token_ids`",
        ),
        ({"batch_size": 0}, "batch_size=0"),
        ({"seed": -1}, "seed=-1"),
    ],
)
def test_what_does_not_fit_is_refused(arguments, message):
    good = {"inputs": {"token_ids": [[5, 6], [7]]}, "labels": [0, 1], "pad_id": 0}
    good |= {"batch_size": 2, "seed": 0}
    with pytest.raises(ValueError, match=message):
        Padded(**{**good, **arguments})


def test_pairs_without_tokens_and_steps_that_are_none_are_refused():
    for sources, targets, message in (
        ([[1]], [[1, 2], [1, 2]], "`decoder_token_ids` must have as many rows as `encoder_token_"),
        ([], [], "Received: 0 rows"),
        ([[]], [[1, 2]], "`encoder_token_ids` .* with one token or more.*the shortest of 0"),
        ([[1]], [[1]], "`decoder_token_ids` .* with one token or more.*the shortest of 0"),
    ):
        with pytest.raises(ValueError, match=message):
            Padded.of_pairs(sources, targets, pad_id=0, batch_size=2, seed=0)
    with pytest.raises(ValueError, match="step=-1"):
        rows().batch(-1)
    with pytest.raises(ValueError, match="step=51"):
        rows().evaluation_batch(51)
