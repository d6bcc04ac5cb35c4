import numpy as np
import pytest
from keras import ops
from layer_contract import run_layer_contract

from keras_tupe.layers import ClsReset


def random_bias(length, heads=2):
    return np.random.normal(size=(1, heads, length, length)).astype("float32")


@pytest.mark.parametrize("given", [{}, {"theta": np.ones((2, 2), "float32")}])
def test_layer_contract(given, tmp_path):
    run_layer_contract(
        ClsReset,
        lambda dtype: {"initializer": "ones"},
        {"position_bias": random_bias(7), **given},
        output_shape=(1, 2, 7, 7),
        num_weights=0 if given else 1,
        folder=tmp_path,
        is_position_term=True,
    )


@pytest.mark.parametrize("length", [1, 2, 7])
@pytest.mark.parametrize("from_outside", [False, True])
def test_the_row_gets_theta_1_and_the_column_theta_2(length, from_outside):
    bias = random_bias(length, heads=3)
    theta = np.random.normal(size=(2, 3)).astype("float32")
    layer = ClsReset()
    if from_outside:
        out = layer(bias, theta=theta)
    else:
        layer.build(bias.shape)
        assert (ops.convert_to_numpy(layer.theta) == 0).all()
        layer.theta.assign(theta)
        out = layer(bias)
    expected = bias.copy()
    expected[0, :, :, 0] = theta[1, :, None]
    expected[0, :, 0] = theta[0, :, None]
    np.testing.assert_array_equal(ops.convert_to_numpy(out), expected)


def test_a_bias_that_is_not_square_is_refused():
    with pytest.raises(ValueError, match=r"one row and one column per token(.|\n)*\(1, 2, 3, 4\)"):
        ClsReset()(np.zeros((1, 2, 3, 4)))
