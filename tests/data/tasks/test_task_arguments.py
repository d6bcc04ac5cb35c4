"""Arguments of another type than the readers take: told with a sentence, for all of them alike."""

import numpy as np
import pytest

from keras_tupe.data import WordOrderPairs, WordOrderRows, read_blimp, read_glue, read_squad

READERS = {
    "path": [read_squad, read_blimp],
    "source": [lambda source, **options: read_glue("rte", source, "train", **options)],
}


@pytest.mark.parametrize("value", [None, 5, True, b"x", [], {}, object])
@pytest.mark.parametrize("name", READERS)
def test_what_is_no_path_is_told(name, value):
    for read in READERS[name]:
        with pytest.raises(TypeError, match=rf"`{name}` must be .*path.*Received: {name} of type"):
            read(value)


@pytest.mark.parametrize("value", [True, 0, "", (), {}, object])
@pytest.mark.parametrize("read", [read for readers in READERS.values() for read in readers])
def test_what_is_no_list_of_the_skipped_is_told(read, value, tmp_path):
    with pytest.raises(TypeError, match="`skipped` must be a list.*Received: skipped=.*"):
        read(tmp_path, skipped=value)


def test_rows_of_word_order_answer_any_step_at_once_and_take_a_seed_of_64_bits():
    ids = np.arange(60, dtype="int32").reshape(12, 5)
    pairs = WordOrderPairs(ids, np.ones_like(ids), np.tile([0, 1], 6), [])
    rows = WordOrderRows(pairs, batch_size=4, seed=2**64 - 1)
    assert rows.batch(10**15)[0]["token_ids"].shape == (4, 5)
    for seed, error in ((-1, ValueError), (2**64, ValueError), (0.5, TypeError), (None, TypeError)):
        with pytest.raises(error, match="`seed` must be.*Received: seed="):
            WordOrderRows(pairs, batch_size=4, seed=seed)
    for size in (None, 2.0, "4", 3, 0):
        with pytest.raises(ValueError, match="an even integer >= 2.*Received: batch_size="):
            WordOrderRows(pairs, batch_size=size, seed=0)
