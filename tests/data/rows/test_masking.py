"""Dynamic masking: what is hidden, and ten million tokens within five standard deviations."""

import types

import numpy as np
import pytest

from keras_tupe.data import Masking, mask_rows

PAD, UNKNOWN, START, END, MASK = range(5)
VOCABULARY_SIZE = 2003
BERT = Masking(VOCABULARY_SIZE, mask_id=MASK, pad_id=PAD, special_ids=(UNKNOWN, START, END))
BEGINS = np.random.default_rng(1).random(VOCABULARY_SIZE) < 0.7
LENGTH, NUM_ROWS, EPOCHS = 512, 4000, 5


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
    """Rows of five epochs, their examples, and what was hidden: the tokens before and after."""
    rows = np.tile(make_rows(), (EPOCHS, 1))
    masking = Masking(VOCABULARY_SIZE, MASK, PAD, (UNKNOWN, START, END), begins_word=request.param)
    inputs, labels, weights = mask_rows(rows, np.arange(len(rows)), masking, seed=17)
    used = weights == 1
    hidden = np.zeros(rows.shape, bool)
    hidden[np.nonzero(used)[0], inputs["mask_positions"][used]] = True
    found = {"rows": rows, "inputs": inputs, "labels": labels, "weights": weights, "used": used}
    found |= {"hidden": hidden, "before": rows[hidden], "after": inputs["token_ids"][hidden]}
    found |= {"maskable": rows > MASK, "by_words": request.param is not None}
    return types.SimpleNamespace(**found)


def test_fifteen_percent_of_ten_million_tokens_are_masked_and_no_special_one(seen):
    number = seen.maskable.sum(axis=1)
    assert number.sum() > 9_700_000
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
    inputs, _, weights = mask_rows(rows, np.arange(4000), masking, seed=0)
    counts = np.bincount(inputs["mask_positions"][weights == 1], minlength=9)
    assert_share(counts[:5], 4000, 0.5)
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
