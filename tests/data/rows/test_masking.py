"""Dynamic masking: counts with binomial bounds, and what a row's masks may depend on."""

import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_tupe.data.rows.masking import Masking, mask_rows

PAD, UNKNOWN, START, END, MASK = range(5)
VOCABULARY_SIZE = 997
BERT = Masking(VOCABULARY_SIZE, mask_id=MASK, pad_id=PAD, special_ids=(UNKNOWN, START, END))


def make_rows(num_rows, length, padding=0):
    """Rows `start tokens end pads` with the same number of pads in each."""
    rows = np.random.default_rng(0).integers(5, VOCABULARY_SIZE, (num_rows, length), "int32")
    rows[:, 0] = START
    rows[:, length - padding - 1] = END
    rows[:, length - padding :] = PAD
    return rows


def assert_share(count, total, probability):
    """Checks a count against its binomial distribution, at five standard deviations."""
    deviation = np.sqrt(total * probability * (1 - probability))
    assert abs(count - total * probability) < 5 * deviation, (count / total, probability)


@pytest.fixture(scope="module")
def many():
    """3,001 masked rows with 131,043 maskable tokens: (rows, inputs, labels, weights)."""
    rows = make_rows(3001, 47, padding=2)
    return rows, *mask_rows(rows, np.arange(3001), BERT, seed=11)


def test_fifteen_percent_are_masked(many):
    rows, _, _, weights = many
    # 43 maskable tokens: 6 or 7 are masked, with a mean of exactly 6.45
    counts = weights.sum(axis=1)
    assert set(counts) == {6, 7}
    assert_share((counts == 7).sum(), len(rows), 0.45)
    assert_share(weights.sum(), 43 * len(rows), 0.15)


def test_masked_tokens_are_80_10_10_mask_random_and_kept(many):
    _, inputs, labels, weights = many
    now = np.take_along_axis(inputs["token_ids"], inputs["mask_positions"], axis=1)[weights == 1]
    before = labels[weights == 1]
    ordinary = VOCABULARY_SIZE - 5
    assert_share((now == MASK).sum(), len(now), 0.8)
    assert_share((now == before).sum(), len(now), 0.1 + 0.1 / ordinary)
    assert_share(((now != MASK) & (now != before)).sum(), len(now), 0.1 - 0.1 / ordinary)


def test_every_place_is_masked_equally_often(many):
    rows, inputs, _, weights = many
    counts = np.bincount(inputs["mask_positions"][weights == 1], minlength=47)
    assert not counts[[0, 44, 45, 46]].any()
    for count in counts[1:44]:
        assert_share(count, len(rows), 0.15)


def test_random_words_are_uniform_over_the_ordinary_pieces():
    masking = Masking(16, mask_id=MASK, pad_id=PAD, special_ids=(UNKNOWN, START, END), rate=1.0)
    rows = np.full((2000, 50), 15)
    inputs, _, _ = mask_rows(rows, np.arange(2000), masking, seed=4)
    counts = np.bincount(inputs["token_ids"].ravel(), minlength=16)
    assert not counts[:MASK].any()
    for count in counts[5:15]:
        assert_share(count, rows.size, 0.1 / 11)
    assert_share(counts[15], rows.size, 0.1 + 0.1 / 11)


def test_labels_are_the_hidden_ids_and_all_else_is_unchanged(many):
    rows, inputs, labels, weights = many
    positions, used = inputs["mask_positions"], weights == 1
    hidden = np.zeros(rows.shape, bool)
    row_index = np.nonzero(used)[0]
    hidden[row_index, positions[used]] = True
    assert hidden.sum() == used.sum()  # no position twice
    np.testing.assert_array_equal(labels[used], rows[row_index, positions[used]])
    np.testing.assert_array_equal(inputs["token_ids"][~hidden], rows[~hidden])


def test_shapes_are_static_and_unused_slots_weigh_nothing(many):
    rows, inputs, labels, weights = many
    slots = 8  # ceil(0.15 * 47)
    assert {name: array.dtype for name, array in inputs.items()} == {
        "token_ids": np.int32,
        "padding_mask": np.int32,
        "mask_positions": np.int32,
    }
    assert inputs["mask_positions"].shape == labels.shape == weights.shape == (3001, slots)
    assert (labels.dtype, weights.dtype) == (np.int32, np.float32)
    unused = weights == 0
    assert not inputs["mask_positions"][unused].any()
    assert (labels[unused] == PAD).all()
    assert (np.diff(weights, axis=1) <= 0).all()  # used slots first
    ascending = np.diff(inputs["mask_positions"], axis=1) > 0
    assert ascending[weights[:, 1:] == 1].all()
    np.testing.assert_array_equal(inputs["padding_mask"], rows != PAD)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(0, 30), unique=True, min_size=1), st.integers(0, 2**64 - 1))
def test_masks_do_not_depend_on_how_rows_are_grouped(chosen, seed):
    rows, numbers = make_rows(31, 23, padding=3), np.arange(31) + 2**33
    together = flat(mask_rows(rows, numbers, BERT, seed=seed))
    apart = flat(mask_rows(rows[chosen], numbers[chosen], BERT, seed=seed))
    for whole, part in zip(together, apart, strict=True):
        np.testing.assert_array_equal(whole[chosen], part)


def test_masks_are_the_same_on_every_machine():
    arrays = flat(mask_rows(make_rows(64, 33), np.arange(64) * 10**9, BERT, seed=2**63))
    content = b"".join(np.ascontiguousarray(array.astype("<f8")).tobytes() for array in arrays)
    assert hashlib.sha256(content).hexdigest()[:16] == "d3f58e5b106fad24"


@pytest.mark.parametrize("change", [{"seed": 12}, {"numbers": 64}])
def test_another_seed_or_example_number_gives_other_masks(change):
    rows = make_rows(64, 33)
    first = mask_rows(rows, np.arange(64), BERT, seed=11)[0]["mask_positions"]
    numbers = np.arange(64) + change.get("numbers", 0)
    second = mask_rows(rows, numbers, BERT, seed=change.get("seed", 11))[0]["mask_positions"]
    assert np.mean((first == second).all(axis=1)) < 0.05


def test_special_tokens_are_masked_on_request_but_padding_never():
    masking = Masking(VOCABULARY_SIZE, MASK, PAD, (START, END), rate=0.5, mask_special=True)
    rows = make_rows(4000, 9, padding=4)
    inputs, _, weights = mask_rows(rows, np.arange(4000), masking, seed=0)
    counts = np.bincount(inputs["mask_positions"][weights == 1], minlength=9)
    for count in counts[:5]:
        assert_share(count, 4000, 0.5)
    assert not counts[5:].any()


def test_max_masked_limits_the_slots():
    masking = Masking(VOCABULARY_SIZE, MASK, PAD, (START, END), rate=0.5, max_masked=3)
    inputs, labels, weights = mask_rows(make_rows(50, 21), np.arange(50), masking, seed=0)
    assert inputs["mask_positions"].shape == labels.shape == (50, 3)
    assert (weights == 1).all()
    assert masking.num_slots(2) == 2


def test_a_row_without_ordinary_tokens_is_left_alone():
    rows = np.array([[START, END, PAD, PAD], [PAD] * 4])
    inputs, labels, weights = mask_rows(rows, [0, 1], BERT, seed=0)
    np.testing.assert_array_equal(inputs["token_ids"], rows)
    assert not weights.any()
    assert (labels == PAD).all()


def test_the_rows_given_are_not_changed():
    rows = make_rows(3, 17)
    before = rows.copy()
    mask_rows(rows, np.arange(3), BERT, seed=0)
    np.testing.assert_array_equal(rows, before)


@pytest.mark.parametrize("bad", [-1, VOCABULARY_SIZE])
def test_an_id_outside_the_vocabulary_is_named_with_its_place(bad):
    rows = make_rows(3, 17)
    rows[1, 5] = rows[2, 2] = bad
    with pytest.raises(ValueError, match=rf"0 to 996; .*Received: token_ids\[1, 5\]={bad}$"):
        mask_rows(rows, np.arange(3), BERT, seed=0)


@pytest.mark.parametrize(
    ("rows", "numbers", "error", "message"),
    [
        (np.ones((2, 5)), [0, 1], TypeError, "integers. Received: token_ids.dtype=float64"),
        (np.ones(5, int), [0], ValueError, r"Received: token_ids.shape=\(5,\)"),
        (np.ones((0, 5), int), [], ValueError, r"Received: token_ids.shape=\(0, 5\)"),
        (np.ones((2, 5), int), [0], ValueError, r"one number >= 0 per row.*shape=\(1,\)"),
        (np.ones((2, 5), int), [0, -1], ValueError, "one number >= 0 per row.*smallest=-1"),
        (np.ones((2, 5), int), [0.0, 1.0], TypeError, "example_numbers.dtype=float64"),
    ],
)
def test_rows_and_numbers_of_the_wrong_kind_are_refused(rows, numbers, error, message):
    with pytest.raises(error, match=message):
        mask_rows(rows, numbers, BERT, seed=0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"mask_id": 9}, r"from 0 to 8. Received: special_ids=\(0, 9\)"),
        ({"special_ids": (-1,)}, r"Received: special_ids=\(-1, 0, 4\)"),
        ({"special_ids": range(9)}, "not special, to draw random words from"),
        ({"rate": 0}, "Received: rate=0"),
        ({"rate": 1.5}, "Received: rate=1.5"),
        ({"max_masked": 0}, "Received: max_masked=0"),
    ],
)
def test_impossible_settings_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        Masking(**{"vocabulary_size": 9, "mask_id": MASK, "pad_id": PAD} | settings)


def flat(masked):
    inputs, labels, weights = masked
    return [*inputs.values(), labels, weights]
