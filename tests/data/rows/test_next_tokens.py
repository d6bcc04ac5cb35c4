"""Rows of a causal language model: what is predicted, and that nothing else is."""

import numpy as np
import pytest

from keras_tupe import data

RULE = data.NextTokens(vocabulary_size=20, pad_id=0, end_id=3)
ROWS = np.array([[2, 7, 8, 3, 9, 3], [2, 7, 3, 0, 0, 0], [2, 7, 8, 9, 10, 11], [0] * 6])


def test_each_token_of_text_is_predicted_once_from_those_before():
    inputs, labels, weights = RULE.examples(ROWS, np.arange(4), 0)
    np.testing.assert_array_equal(inputs["token_ids"], ROWS[:, :-1])
    np.testing.assert_array_equal(inputs["padding_mask"], ROWS[:, :-1] != 0)
    np.testing.assert_array_equal(labels, ROWS[:, 1:])
    # the end between documents counts, the one that ends a row does not
    np.testing.assert_array_equal(
        weights, [[1, 1, 1, 1, 0], [1, 0, 0, 0, 0], [1] * 5, [0, 0, 0, 0, 0]]
    )


def test_shapes_and_dtypes():
    inputs, labels, weights = RULE.examples(ROWS, np.arange(4), 0)
    found = [*inputs.values(), labels, weights]
    assert [(x.shape, x.dtype.name) for x in found[:3]] == [((4, 5), "int32")] * 3
    assert (weights.shape, weights.dtype.name) == ((4, 5), "float32")


def test_rows_make_batches_of_them_that_workers_share():
    source = np.random.default_rng(0).integers(4, 20, (7, 6))
    rows = data.Rows(source, RULE, batch_size=4, seed=3)
    inputs, labels, _ = rows.batch(5)
    chosen = source[rows.row_numbers(5)]
    np.testing.assert_array_equal(inputs["token_ids"], chosen[:, :-1])
    np.testing.assert_array_equal(labels, chosen[:, 1:])
    parts = [rows.shard(index, 2).batch(5)[1] for index in range(2)]
    np.testing.assert_array_equal(np.concatenate(parts), labels)
    *_, (_, _, weights) = rows.evaluation_batches()
    np.testing.assert_array_equal(weights[3], 0)  # a row that fills the batch up


def test_without_an_end_token_all_but_padding_is_predicted():
    weights = data.NextTokens(20, 0).examples(ROWS, np.arange(4), 0)[2]
    np.testing.assert_array_equal(weights, ROWS[:, 1:] != 0)


@pytest.mark.parametrize("name", ["pad_id", "end_id"])
def test_ids_outside_the_vocabulary_are_refused(name):
    with pytest.raises(ValueError, match=f"`{name}` must be from 0 to 19"):
        data.NextTokens(**{"vocabulary_size": 20, "pad_id": 0, "end_id": 3, name: 20})


def test_a_row_of_one_token_is_refused():
    with pytest.raises(ValueError, match="two tokens in a row at least"):
        RULE.examples(np.array([[2]]), np.arange(1), 0)
