"""Dynamic masking: what is hidden, and two million tokens within five standard deviations."""

import dataclasses
import types

import numpy as np
import pytest
from batch_arrays import arrays_of, assert_same
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_tupe.data import Masking
from keras_tupe.data.rows.counter_rng import random_bits

PAD, UNKNOWN, START, END, MASK = range(5)
VOCABULARY_SIZE = 2003
BERT = Masking(VOCABULARY_SIZE, mask_id=MASK, pad_id=PAD, special_ids=(UNKNOWN, START, END))
BEGINS = np.random.default_rng(1).random(VOCABULARY_SIZE) < 0.7
LENGTH, NUM_ROWS = 512, 4000


def make_rows(num_rows=NUM_ROWS, length=LENGTH):
    """Rows of which some have separators, an unknown piece and padding."""
    rows = np.random.default_rng(0).integers(5, VOCABULARY_SIZE, (num_rows, length), "int32")
    rows[:, 0], rows[:, -1] = START, END
    rows[::3, 2 * length // 5] = END
    rows[::5, 7 * length // 8] = END
    rows[::5, 7 * length // 8 + 1 :] = PAD
    rows[::7, length // 5] = UNKNOWN
    return rows


def assert_share(count, total, probability):
    """Checks counts against their binomial distributions, at five standard deviations."""
    deviation = np.sqrt(total * probability * (1 - probability))
    assert (abs(count - total * probability) <= 5 * deviation).all(), (count / total, probability)


@pytest.fixture(scope="module", params=[None, BEGINS], ids=["tokens", "words"])
def seen(request):
    """Rows, their examples, and what was hidden: the tokens before and after."""
    rows = make_rows()
    masking = Masking(VOCABULARY_SIZE, MASK, PAD, (UNKNOWN, START, END), begins_word=request.param)
    inputs, labels, weights = masking.examples(rows, np.arange(len(rows)), 17)
    used = weights == 1
    hidden = np.zeros(rows.shape, bool)
    hidden[np.nonzero(used)[0], inputs["mask_positions"][used]] = True
    found = {"rows": rows, "inputs": inputs, "labels": labels, "weights": weights, "used": used}
    found |= {"hidden": hidden, "before": rows[hidden], "after": inputs["token_ids"][hidden]}
    found |= {"maskable": rows > MASK, "by_words": request.param is not None}
    return types.SimpleNamespace(**found)


def test_fifteen_percent_of_two_million_tokens_are_masked_and_no_special_one(seen):
    number = seen.maskable.sum(axis=1)
    assert number.sum() > 1_900_000
    assert_share(seen.hidden.sum(), number.sum(), 0.15)
    assert not seen.hidden[~seen.maskable].any()
    masked = seen.hidden.sum(axis=1)
    assert (masked <= np.ceil(0.15 * number)).all()
    if not seen.by_words:  # int(0.15 n + U) of each row, anywhere in it
        assert (masked >= np.floor(0.15 * number)).all()
        assert_share(seen.hidden.sum(axis=0), seen.maskable.sum(axis=0), 0.15)


def test_masked_tokens_are_80_10_10_mask_random_and_kept(seen):
    before, after, ordinary = seen.before, seen.after, VOCABULARY_SIZE - 5
    assert_share((after == MASK).sum(), len(after), 0.8)
    assert_share((after == before).sum(), len(after), 0.1 + 0.1 / ordinary)
    drawn = np.bincount(after[(after != MASK) & (after != before)], minlength=VOCABULARY_SIZE)
    assert_share(drawn.sum(), len(after), 0.1 - 0.1 / ordinary)
    assert not drawn[:5].any()
    expected, freedom = drawn[5:].mean(), ordinary - 1
    statistic = ((drawn[5:] - expected) ** 2 / expected).sum()
    assert abs(statistic - freedom) < 5 * np.sqrt(2 * freedom)


def test_whole_words_are_masked_whole(seen):
    rows, hidden = seen.rows, seen.hidden
    goes_on = ~BEGINS[rows[:, 1:]] & (rows[:, 1:] > MASK) & (rows[:, :-1] > MASK)
    is_torn = (goes_on & (hidden[:, 1:] != hidden[:, :-1])).any()
    assert is_torn != seen.by_words


def test_labels_are_the_hidden_ids_and_all_else_is_unchanged(seen):
    positions, used = seen.inputs["mask_positions"], seen.used
    assert seen.hidden.sum() == used.sum()  # no position twice
    np.testing.assert_array_equal(seen.labels[used], seen.before)
    assert (seen.inputs["token_ids"] == seen.rows)[~seen.hidden].all()
    np.testing.assert_array_equal(seen.inputs["padding_mask"], seen.rows != PAD)
    assert positions.shape[1] == 77  # ceil(0.15 * 512)
    assert not positions[~used].any()
    assert (seen.labels[~used] == PAD).all()
    assert (np.diff(seen.weights, axis=1) <= 0).all()  # used slots first
    assert (np.diff(positions, axis=1) > 0)[used[:, 1:]].all()


def test_special_tokens_are_masked_on_request_but_padding_never():
    masking = Masking(VOCABULARY_SIZE, MASK, PAD, (START, END), rate=0.5, mask_special=True)
    rows = np.tile([START, 5, 6, 7, END, PAD, PAD, PAD, PAD], (4000, 1))
    inputs, _, weights = masking.examples(rows, np.arange(4000), 0)
    counts = np.bincount(inputs["mask_positions"][weights == 1], minlength=9)
    assert_share(counts[:5], 4000, 0.5)
    assert not counts[5:].any()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"mask_id": 9}, r"from 0 to 8. Received: special_ids=\(0, 9\)"),
        ({"special_ids": (-1,)}, r"Received: special_ids=\(-1, 0, 4\)"),
        ({"special_ids": range(9)}, "not special, to draw random words from"),
        ({"rate": 0}, "Received: rate=0"),
        ({"rate": 1.5}, "Received: rate=1.5"),
        ({"begins_word": [True] * 8}, r"vocabulary, 9. Received: len\(begins_word\)=8$"),
    ],
)
def test_impossible_settings_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Masking(**{"vocabulary_size": 9, "mask_id": MASK, "pad_id": PAD} | arguments)


# === Whole words against loops in Python ===

SMALL = 60
SMALL_BEGINS = np.arange(SMALL) % 3 != 0  # 6, 9, 12, ... go on with a word
WORDS = Masking(SMALL, MASK, PAD, (UNKNOWN, START, END), begins_word=SMALL_BEGINS)
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
    """What `Masking` promises, one row and one word at a time."""
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
        mask_special=draw(st.booleans()),
    )
    examples = draw(st.lists(st.integers(0, 2**40), min_size=len(rows), max_size=len(rows)))
    return np.array(rows), np.array(examples), masking


@settings(max_examples=400)
@given(batches(), st.integers(0, 2**64 - 1))
def test_words_are_chosen_as_promised(batch, seed):
    rows, examples, masking = batch
    inputs, _, weights = masking.examples(rows, examples, seed)
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
        for begins in ([True] * SMALL, None)
    ]
    assert_same(*found)


def test_each_piece_of_a_word_draws_its_own_replacement():
    rows = np.tile([START, 5, LONG, END], (20_000, 1))
    inputs, _, _ = dataclasses.replace(WORDS, rate=1.0).examples(rows, np.arange(20_000), 5)
    is_mask = inputs["token_ids"][:, 1:3] == MASK
    both = is_mask.all(axis=1).mean()
    assert abs(both - 0.64) < 5 * np.sqrt(0.64 * 0.36 / 20_000)


def test_records_can_be_compared():
    assert dataclasses.replace(WORDS, begins_word=SMALL_BEGINS.tolist()) == WORDS
    assert dataclasses.replace(WORDS, begins_word=~SMALL_BEGINS) != WORDS
    assert hash(dataclasses.replace(WORDS)) == hash(WORDS)
    assert "begins_word" not in repr(WORDS)
