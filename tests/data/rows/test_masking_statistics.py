"""Ten million tokens through `Rows`: shares within five standard deviations of what is promised."""

import numpy as np
import pytest

from keras_tupe.data.rows.masking import Masking
from keras_tupe.data.rows.rows import Rows

PAD, UNKNOWN, START, END, MASK = range(5)
VOCABULARY_SIZE = 2003
BEGINS = np.random.default_rng(1).random(VOCABULARY_SIZE) < 0.7
LENGTH, NUM_ROWS, EPOCHS = 512, 4000, 5


def make_rows():
    """Rows of which some have separators and padding."""
    rows = np.random.default_rng(0).integers(5, VOCABULARY_SIZE, (NUM_ROWS, LENGTH), "int32")
    rows[:, 0], rows[:, -1] = START, END
    rows[::3, 200] = END
    rows[::5, 450] = END
    rows[::5, 451:] = PAD
    rows[::7, 99] = UNKNOWN
    return rows


@pytest.fixture(scope="module", params=[None, BEGINS], ids=["tokens", "words"])
def seen(request):
    """Counts over all batches of five epochs."""
    masking = Masking(VOCABULARY_SIZE, MASK, PAD, (UNKNOWN, START, END), begins_word=request.param)
    rows = Rows(make_rows(), masking, batch_size=1000, seed=17)
    found = {"by_words": request.param is not None, "maskable": 0, "masked": 0, "specials": 0}
    found |= {"mask": 0, "kept": 0, "torn": 0, "epochs": []}
    found["random"] = np.zeros(VOCABULARY_SIZE, int)
    for step in range(EPOCHS * NUM_ROWS // 1000):
        inputs, labels, weights = rows.batch(step)
        used = weights == 1
        now = np.take_along_axis(inputs["token_ids"], inputs["mask_positions"], axis=1)[used]
        before = labels[used]
        original = inputs["token_ids"].copy()
        row_index, columns = np.nonzero(used)[0], inputs["mask_positions"][used]
        original[row_index, columns] = before
        found["maskable"] += np.isin(original, range(5), invert=True).sum()
        found["masked"] += used.sum()
        found["specials"] += np.isin(before, range(5)).sum()
        found["mask"] += (now == MASK).sum()
        found["kept"] += (now == before).sum()
        changed = now[(now != MASK) & (now != before)]
        found["random"] += np.bincount(changed, minlength=VOCABULARY_SIZE)
        hidden = np.zeros(original.shape, bool)
        hidden[row_index, columns] = True
        goes_on = ~BEGINS[original[:, 1:]] & (original[:, 1:] > 4) & (original[:, :-1] > 4)
        found["torn"] += (goes_on & (hidden[:, 1:] != hidden[:, :-1])).sum()
        found["epochs"].append(inputs["token_ids"].tobytes())
    return found


def assert_share(count, total, probability):
    deviation = np.sqrt(total * probability * (1 - probability))
    assert abs(count - total * probability) < 5 * deviation, (count / total, probability)


def test_fifteen_percent_of_ten_million_tokens_are_masked(seen):
    assert seen["maskable"] > 9_700_000
    assert_share(seen["masked"], seen["maskable"], 0.15)


def test_masked_tokens_are_80_10_10(seen):
    ordinary = VOCABULARY_SIZE - 5
    assert_share(seen["mask"], seen["masked"], 0.8)
    assert_share(seen["kept"], seen["masked"], 0.1 + 0.1 / ordinary)
    assert_share(seen["random"].sum(), seen["masked"], 0.1 - 0.1 / ordinary)


def test_special_tokens_are_never_masked_nor_drawn(seen):
    assert seen["specials"] == 0
    assert not seen["random"][:5].any()


def test_random_words_are_uniform_over_the_ordinary_pieces(seen):
    counts = seen["random"][5:]
    expected = counts.mean()
    statistic = ((counts - expected) ** 2 / expected).sum()
    freedom = len(counts) - 1
    assert abs(statistic - freedom) < 5 * np.sqrt(2 * freedom)


def test_whole_words_are_masked_whole(seen):
    assert (seen["torn"] == 0) == seen["by_words"]


def test_every_batch_of_every_epoch_differs(seen):
    assert len(set(seen["epochs"])) == EPOCHS * NUM_ROWS // 1000
