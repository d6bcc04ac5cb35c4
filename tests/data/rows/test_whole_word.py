"""Whole-word masking against loops in Python, and its promises."""

import dataclasses

import numpy as np
import pytest
from batch_arrays import arrays_of, assert_same
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_tupe.data import Masking, mask_rows
from keras_tupe.data.rows.counter_rng import random_bits

PAD, UNKNOWN, START, END, MASK = range(5)
SIZE = 60
BEGINS = np.arange(SIZE) % 3 != 0  # 6, 9, 12, ... go on with a word
WORDS = Masking(SIZE, MASK, PAD, (UNKNOWN, START, END), begins_word=BEGINS)
LONG = 6  # goes on with a word


def words_of(row, masking):
    """The words of a row, lists of columns."""
    words = []
    for column, token in enumerate(row):
        is_special = token in masking.special_ids
        follows = column and row[column - 1] not in masking.special_ids and not is_special
        if follows and not masking.begins_word[token]:
            words[-1].append(column)
        else:
            words.append([column])
    return words


def expected_positions(row, example, masking, seed):
    """What `mask_rows` promises, one row and one word at a time."""
    never = [PAD] if masking.mask_special else masking.special_ids
    words = [word for word in words_of(row, masking) if row[word[0]] not in never]
    uniform = (int(random_bits(seed, "masking: count", example)[0]) >> 32) / 2**32
    left = int(masking.rate * sum(map(len, words)) + uniform)
    left = min(left, masking.num_slots(len(row)), sum(map(len, words)))
    chosen = []
    for word in sorted(
        words, key=lambda word: random_bits(seed, "masking: place", example, word[0])[0]
    ):
        if len(word) <= left:
            chosen += word
            left -= len(word)
    return sorted(chosen)


@st.composite
def batches(draw):
    """Rows of any ids, with their masking and the numbers of their examples."""
    length = draw(st.integers(1, 24))
    ids = st.lists(st.integers(0, 15), min_size=length, max_size=length)
    rows = draw(st.lists(ids, min_size=1, max_size=5))
    masking = dataclasses.replace(
        WORDS,
        rate=draw(st.sampled_from([0.15, 0.4, 1.0])),
        max_masked=draw(st.sampled_from([None, 1, 3])),
        mask_special=draw(st.booleans()),
    )
    examples = draw(st.lists(st.integers(0, 2**40), min_size=len(rows), max_size=len(rows)))
    return np.array(rows), np.array(examples), masking


@settings(max_examples=400)
@given(batches(), st.integers(0, 2**64 - 1))
def test_words_are_chosen_as_promised(batch, seed):
    rows, examples, masking = batch
    inputs, _, weights = mask_rows(rows, examples, masking, seed=seed)
    for row, example, positions, used in zip(
        rows, examples, inputs["mask_positions"], weights == 1, strict=True
    ):
        assert positions[used].tolist() == expected_positions(row, example, masking, seed)


@settings(max_examples=200)
@given(batches(), st.integers(0, 2**64 - 1))
def test_where_every_piece_is_a_word_the_masks_are_those_of_tokens(batch, seed):
    rows, examples, masking = batch
    found = [
        arrays_of(dataclasses.replace(masking, begins_word=begins).examples(rows, examples, seed))
        for begins in ([True] * SIZE, None)
    ]
    assert_same(*found)


def test_a_word_too_long_is_passed_over_for_a_smaller_one():
    # two words: one of three tokens, one of one; there is room for one token
    rows = np.tile([START, 5, LONG, LONG, 7, END], (200, 1))
    masking = dataclasses.replace(WORDS, rate=0.3)  # int(1.2 + U): one or two tokens
    inputs, _, weights = mask_rows(rows, np.arange(200), masking, seed=1)
    assert (weights.sum(axis=1) == 1).all()
    assert (inputs["mask_positions"][:, 0] == 4).all()


def test_the_rest_of_a_split_word_at_the_start_of_a_row_is_a_word():
    rows = np.tile([START, LONG, LONG, END], (300, 1))
    masking = dataclasses.replace(WORDS, rate=1.0)
    inputs, _, weights = mask_rows(rows, np.arange(300), masking, seed=1)
    assert (inputs["mask_positions"][:, :2] == [1, 2]).all()
    assert (weights.sum(axis=1) == 2).all()
    without_start = np.full((10, 4), LONG)
    assert (mask_rows(without_start, np.arange(10), masking, seed=1)[2].sum(axis=1) == 4).all()


def test_all_words_of_one_size_are_masked_equally_often():
    rows = np.tile([START, *[5, LONG] * 10, END], (4000, 1))
    inputs, _, weights = mask_rows(rows, np.arange(4000), WORDS, seed=3)
    assert set(weights.sum(axis=1)) == {2}  # 20 tokens: int(3 + U) = 3, a word and no half
    firsts = inputs["mask_positions"][:, 0]
    assert (firsts % 2 == 1).all()
    assert (inputs["mask_positions"][:, 1] == firsts + 1).all()
    counts = np.bincount(firsts // 2, minlength=10)
    np.testing.assert_allclose(counts, 400, atol=5 * np.sqrt(4000 * 0.1 * 0.9))


def test_each_piece_of_a_word_draws_its_own_replacement():
    rows = np.tile([START, 5, LONG, END], (20_000, 1))
    inputs, _, _ = mask_rows(rows, np.arange(20_000), dataclasses.replace(WORDS, rate=1.0), seed=5)
    is_mask = inputs["token_ids"][:, 1:3] == MASK
    both = is_mask.all(axis=1).mean()
    assert abs(both - 0.64) < 5 * np.sqrt(0.64 * 0.36 / 20_000)


def test_one_value_per_piece_is_needed():
    with pytest.raises(ValueError, match=r"vocabulary, 60. Received: len\(begins_word\)=59$"):
        dataclasses.replace(WORDS, begins_word=BEGINS[1:])


def test_records_can_be_compared():
    assert dataclasses.replace(WORDS, begins_word=BEGINS.tolist()) == WORDS
    assert dataclasses.replace(WORDS, begins_word=~BEGINS) != WORDS
    assert hash(dataclasses.replace(WORDS)) == hash(WORDS)
    assert "begins_word" not in repr(WORDS)
