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


def test_the_share_dropped_is_the_rate_and_the_rest_is_scaled_up():
    ones = np.ones((1000, 100), "float32")
    out = ops.convert_to_numpy(Dropout(0.3)(ones, training=True))
    assert set(np.unique(out.round(5))) == {np.float32(0), np.float32(1 / 0.7).round(5)}
    # Binomial bounds of 100,000 draws, six standard deviations.
    assert abs((out == 0).mean() - 0.3) < 6 * np.sqrt(0.3 * 0.7 / ones.size)


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
