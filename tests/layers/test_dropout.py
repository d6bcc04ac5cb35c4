import keras
import numpy as np
import pytest
from keras import ops
from layer_contract import run_layer_contract

from keras_tupe.layers import Dropout


def test_layer_contract(tmp_path):
    run_layer_contract(
        Dropout,
        lambda dtype: {"rate": 0.3, "seed": 5},
        {"inputs": np.random.normal(size=(3, 7, 10)).astype("float32")},
        output_shape=(3, 7, 10),
        num_weights=0,
        num_states=1,
        folder=tmp_path,
    )


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5])
def test_the_share_dropped_is_the_rate_and_the_rest_is_scaled_up(rate, dtype):
    ones = np.ones((1001, 1001), "float32")  # an odd number of elements
    out = ops.convert_to_numpy(ops.cast(Dropout(rate, dtype=dtype)(ones, training=True), "float32"))
    low, high = np.unique(out)
    assert low == 0
    assert abs(high - 1 / (1 - rate)) < (1e-4 if dtype == "float32" else 5e-3)
    # Binomial bounds of a million draws, six standard deviations.
    assert abs((out == 0).mean() - rate) < 6 * np.sqrt(rate * (1 - rate) / ones.size)


def test_elements_are_dropped_one_by_one():
    out = ops.convert_to_numpy(Dropout(0.5)(np.ones((2, 100_000), "float32"), training=True)) > 0
    for shift in (1, 2, 3, 4, 100):  # halves of one word, neighbours, rows
        same = (out.ravel()[shift:] == out.ravel()[:-shift]).mean()
        assert abs(same - 0.5) < 6 * 0.5 / np.sqrt(out.size)


def test_nothing_is_dropped_outside_training_or_at_rate_zero():
    x = np.random.normal(size=(5, 7)).astype("float32")
    np.testing.assert_array_equal(ops.convert_to_numpy(Dropout(0.5)(x)), x)
    np.testing.assert_array_equal(ops.convert_to_numpy(Dropout(0.5)(x, training=False)), x)
    np.testing.assert_array_equal(ops.convert_to_numpy(Dropout(0.0)(x, training=True)), x)


def test_calls_differ_and_seeds_repeat():
    ones = np.ones((50, 50), "float32")
    layer, twin = Dropout(0.5, seed=3), Dropout(0.5, seed=3)
    first, second = (ops.convert_to_numpy(layer(ones, training=True)) for _ in range(2))
    assert (first != second).any()
    np.testing.assert_array_equal(first, ops.convert_to_numpy(twin(ones, training=True)))


def test_the_seed_generator_can_be_replaced_before_the_first_call():
    ones = np.ones((50, 50), "float32")
    layer, twin = Dropout(0.5, seed=3), Dropout(0.5, seed=4)
    layer.seed_generator = keras.random.SeedGenerator(4)
    np.testing.assert_array_equal(
        ops.convert_to_numpy(layer(ones, training=True)),
        ops.convert_to_numpy(twin(ones, training=True)),
    )


@pytest.mark.parametrize("rate", [-0.1, 1, 1.0, 1.5, "0.1", None, True, float("nan")])
def test_impossible_rates_are_refused(rate):
    with pytest.raises(ValueError, match=r"a number in \[0, 1\). Received: rate="):
        Dropout(rate)
