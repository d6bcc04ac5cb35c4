"""The parts that layers share."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_tupe.layers._parts import at_least_float32, fresh, take_rows


def test_rows_are_taken_for_indices_of_any_shape():
    table = np.random.normal(size=(5, 3))
    for indices in (np.array(4), np.array([0, 4]), np.array([[[1, 2]], [[3, 3]]])):
        out = ops.convert_to_numpy(take_rows(ops.convert_to_tensor(table), indices))
        np.testing.assert_array_equal(out, table[indices])


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        ("float16", "float32"),
        ("bfloat16", "float32"),
        ("float32", "float32"),
        ("float64", "float64"),
    ],
)
def test_precision_is_raised_to_float32_and_never_lowered(dtype, expected):
    assert at_least_float32(dtype) == expected


def test_a_fresh_initializer_draws_other_numbers_of_the_same_kind():
    one = keras.initializers.RandomNormal(stddev=0.5)
    other = fresh(one)
    assert isinstance(other, keras.initializers.RandomNormal)
    assert other.stddev == 0.5
    drawn = [ops.convert_to_numpy(i(shape=(50, 50))) for i in (one, other)]
    assert np.abs(drawn[0] - drawn[1]).max() > 0.1
    assert drawn[1].std() == pytest.approx(0.5, rel=0.1)
