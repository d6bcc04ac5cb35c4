"""Random masks, by counts: bounds are 5 standard deviations of the binomial distribution."""

import math

import numpy as np
import pytest
import tensorflow as tf
from tiny_vocabularies import tokenizer

from keras_tupe.tokenizers import mask_tokens

SEED = (7, 11)


@pytest.fixture
def op():
    return tokenizer("wordpiece")


def ordinary_ids(op):
    return np.setdiff1d(np.arange(op.vocabulary_size), op.special_ids)


def text_rows(op, batch, length):
    """Rows [CLS] text [SEP], every tenth followed by padding, over ordinary ids."""
    ids = np.random.default_rng(5).choice(ordinary_ids(op), (batch, length)).astype("int32")
    ids[:, 0], ids[:, -1] = op.start_id, op.end_id
    ids[::10, length // 2 :] = op.pad_id
    ids[::7, 3] = op.unknown_id
    return ids


def assert_share(count, total, rate):
    assert abs(count - rate * total) < 5 * math.sqrt(total * rate * (1 - rate)), (count, total)


def test_masks_of_100000_tokens_have_the_shares_of_bert(op):
    ids = text_rows(op, 1000, 128)
    masked, positions, labels, weights = (x.numpy() for x in mask_tokens(ids, op, SEED, 20))
    maskable = ~np.isin(ids, op.special_ids)
    assert maskable.sum() > 100_000
    chosen = weights.astype(bool)
    assert_share(chosen.sum(), maskable.sum(), 0.15)
    rows = np.nonzero(chosen)[0]
    places = positions[chosen]
    assert maskable[rows, places].all()
    assert (labels[chosen] == ids[rows, places]).all()
    new = masked[rows, places]
    total, ordinary = chosen.sum(), len(ordinary_ids(op))
    assert_share((new == op.mask_id).sum(), total, 0.8)
    assert_share((new == labels[chosen]).sum(), total, 0.1 + 0.1 / ordinary)
    random = new[(new != op.mask_id) & (new != labels[chosen])]
    assert_share(len(random), total, 0.1 * (1 - 1 / ordinary))
    # Nothing else has changed.
    masked[rows, places] = ids[rows, places]
    assert (masked == ids).all()


def test_the_number_of_masks_of_a_row_is_the_share_rounded_up_or_down_at_random(op):
    ids = text_rows(op, 2000, 25)
    count = (~np.isin(ids, op.special_ids)).sum(1)
    numbers = mask_tokens(ids, op, SEED, 4)[3].numpy().sum(1)
    assert ((numbers == np.floor(0.15 * count)) | (numbers == np.ceil(0.15 * count))).all()
    long = count == 23  # 3.45 on average
    assert_share((numbers[long] == 4).sum(), long.sum(), 0.45)


def test_random_pieces_are_uniform_over_pieces_that_are_not_special(op):
    ids = text_rows(op, 1000, 128)
    ordinary = ordinary_ids(op)
    masked, *_ = mask_tokens(ids, op, SEED, 126, 1.0, 0.0, 1.0)
    new = masked.numpy()[~np.isin(ids, op.special_ids)]
    counts = np.bincount(new, minlength=op.vocabulary_size)
    assert counts[list(op.special_ids)].sum() == 0
    for piece in ordinary:
        assert_share(counts[piece], len(new), 1 / len(ordinary))


@pytest.mark.parametrize("slots", [3, 20])
def test_every_place_is_chosen_equally_often_even_when_slots_run_out(op, slots):
    ids = np.full((4000, 30), ordinary_ids(op)[0], "int32")
    _, positions, _, weights = (x.numpy() for x in mask_tokens(ids, op, SEED, slots, 0.2))
    number = min(6, slots)
    assert (weights.sum(1) == number).all()
    counts = np.bincount(positions[weights > 0], minlength=30)
    for count in counts:
        assert_share(count, 4000, number / 30)


def test_slots_are_filled_from_the_left_in_order_and_empty_ones_are_zero(op):
    ids = text_rows(op, 200, 16)
    _, positions, labels, weights = (x.numpy() for x in mask_tokens(ids, op, SEED, 40, 0.5))
    assert positions.shape == labels.shape == weights.shape == (200, 40)
    assert (np.diff(weights, axis=1) <= 0).all()
    empty = weights == 0
    assert not positions[empty].any()
    assert not labels[empty].any()
    assert all((np.diff(p[w > 0]) > 0).all() for p, w in zip(positions, weights, strict=True))


def test_masks_are_a_pure_function_of_the_seed(op):
    ids = text_rows(op, 8, 64)
    expected = [x.numpy() for x in mask_tokens(ids, op, SEED, 12)]
    again = tf.function(lambda seed: mask_tokens(ids, op, seed, 12))(tf.constant(SEED))
    for a, b in zip(again, expected, strict=True):
        np.testing.assert_array_equal(a, b)
    other = mask_tokens(ids, op, (7, 12), 12)
    assert (other[1].numpy() != expected[1]).any()


def test_no_rows_give_no_masks(op):
    outputs = mask_tokens(tf.zeros([0, 6], tf.int32), op, SEED, 2)
    assert [tuple(x.shape) for x in outputs] == [(0, 6), (0, 2), (0, 2), (0, 2)]
