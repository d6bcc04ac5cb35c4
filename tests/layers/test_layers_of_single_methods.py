"""Layers that live in the file of the one positional method that uses them."""

import numpy as np
import pytest
from keras import ops
from layer_contract import run_layer_contract
from tolerances import in_float64

from keras_tupe.positions.bert_ad import FourTermAttention
from keras_tupe.positions.sinusoidal import SinusoidalPositionEmbedding


def test_layer_contract_of_the_sinusoids(tmp_path):
    run_layer_contract(
        SinusoidalPositionEmbedding,
        lambda dtype: {},
        {"hidden_states": np.random.normal(size=(3, 7, 11)).astype("float32")},
        output_shape=(3, 7, 11),
        num_weights=0,
        folder=tmp_path,
    )


def test_layer_contract_of_the_four_terms(tmp_path):
    run_layer_contract(
        FourTermAttention,
        lambda dtype: {"num_heads": 2, "key_dim": 5, "dropout": 0.1},
        {
            "hidden_states": np.random.normal(size=(3, 7, 11)).astype("float32"),
            "shared_positions": list(np.random.normal(size=(2, 7, 2, 5)).astype("float32")),
        },
        output_shape=(3, 7, 11),
        num_weights=8,
        num_states=1,
        folder=tmp_path,
        dead_weights=["key/bias"],
    )


@pytest.mark.parametrize("width", [10, 11])
def test_even_channels_are_sines_and_odd_ones_cosines(width):
    layer = SinusoidalPositionEmbedding(dtype="float64")
    out = ops.convert_to_numpy(layer(np.zeros((1, 600, width))))[0]
    i = np.arange(600)[:, None]
    t = np.arange(width) // 2
    angle = i / 10000 ** (2 * t / width)
    expected = np.where(np.arange(width) % 2 == 0, np.sin(angle), np.cos(angle))
    np.testing.assert_allclose(out, expected, atol=in_float64(1e-12))


@pytest.mark.parametrize("dtype", ["mixed_float16", "mixed_bfloat16"])
def test_angles_are_computed_in_float32_under_half_precision(dtype):
    layer = SinusoidalPositionEmbedding(dtype=dtype)
    out = ops.convert_to_numpy(ops.cast(layer(np.zeros((1, 3001, 10), "float32")), "float64"))[0]
    expected = np.sin(np.arange(3001))  # channel 0
    np.testing.assert_allclose(out[:, 0], expected, atol=0.01)  # half precision of the sum
