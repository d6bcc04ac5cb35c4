"""Layers that live in the file of the one positional method that uses them."""

import keras
import numpy as np
import pytest
from keras import ops
from layer_contract import run_layer_contract
from tolerances import in_float64

from keras_tupe.positions.bert_ad import FourTermAttention
from keras_tupe.positions.deberta import DisentangledAttention, DistanceVectors
from keras_tupe.positions.rope import RotaryAngles, RotaryAttention
from keras_tupe.positions.sinusoidal import SinusoidalPositionEmbedding
from keras_tupe.positions.xlnet import RelativeSinusoids, XLNetAttention


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


def test_waves_of_another_height_are_those_of_scaled_token_vectors():
    tokens, width = np.random.default_rng(5).normal(size=(2, 9, 16)), 16
    low = SinusoidalPositionEmbedding(scale=width**-0.5, dtype="float64")(tokens)
    high = SinusoidalPositionEmbedding(dtype="float64")(tokens * width**0.5)
    low, high = ops.convert_to_numpy(low), ops.convert_to_numpy(high)
    np.testing.assert_allclose(low * width**0.5, high, atol=in_float64(1e-12))


@pytest.mark.parametrize("scale", [0, -0.5, float("nan"), "0.1", True])
def test_waves_without_a_height_are_refused(scale):
    with pytest.raises(ValueError, match="`scale` must be a number above 0"):
        SinusoidalPositionEmbedding(scale=scale)


@pytest.mark.parametrize("dtype", ["mixed_float16", "mixed_bfloat16"])
def test_angles_are_computed_in_float32_under_half_precision(dtype):
    layer = SinusoidalPositionEmbedding(dtype=dtype)
    out = ops.convert_to_numpy(ops.cast(layer(np.zeros((1, 3001, 10), "float32")), "float64"))[0]
    expected = np.sin(np.arange(3001))  # channel 0
    np.testing.assert_allclose(out[:, 0], expected, atol=0.01)  # half precision of the sum


def attention_settings(dtype):
    return {"num_heads": 2, "key_dim": 5, "dropout": 0.1}


HIDDEN = np.random.default_rng(0).normal(size=(3, 7, 11)).astype("float32")


def waves(*shape):
    return np.random.default_rng(1).normal(size=shape).astype("float32")


def test_layer_contract_of_relative_sinusoids(tmp_path):
    run_layer_contract(
        RelativeSinusoids,
        lambda dtype: {"width": 11},
        {"hidden_states": HIDDEN},
        output_shape=(13, 11),
        num_weights=0,
        folder=tmp_path,
        is_position_term=True,
    )


@pytest.mark.parametrize(("use_biases", "num_weights"), [(True, 12), (False, 10)])
def test_layer_contract_of_xlnet(use_biases, num_weights, tmp_path):
    run_layer_contract(
        XLNetAttention,
        lambda dtype: {
            **attention_settings(dtype),
            "use_biases": use_biases,
            "untie_cls": True,
        },
        {"hidden_states": HIDDEN, "shared_positions": waves(13, 11)},
        output_shape=(3, 7, 11),
        num_weights=num_weights,
        num_states=1,
        folder=tmp_path,
        dead_weights=["key/bias"],
    )


def test_layer_contract_of_rotary_angles(tmp_path):
    run_layer_contract(
        RotaryAngles,
        lambda dtype: {"key_dim": 5},
        {"hidden_states": HIDDEN},
        output_shape=[(7, 2), (7, 2)],
        num_weights=0,
        folder=tmp_path,
        is_position_term=True,
    )


def test_layer_contract_of_rotary_attention(tmp_path):
    run_layer_contract(
        RotaryAttention,
        lambda dtype: {**attention_settings(dtype), "untie_cls": True},
        {"hidden_states": HIDDEN, "shared_positions": [waves(7, 2), waves(7, 2)]},
        output_shape=(3, 7, 11),
        num_weights=8,
        num_states=1,
        folder=tmp_path,
    )


def test_layer_contract_of_the_distance_vectors(tmp_path):
    run_layer_contract(
        DistanceVectors,
        lambda dtype: {
            "max_distance": 4,
            "width": 11,
            "untie_cls": True,
            "initializer": keras.initializers.RandomNormal(0.3),
        },
        {"hidden_states": HIDDEN},
        output_shape=(10, 11),
        num_weights=2,
        folder=tmp_path,
        is_position_term=True,
    )


def test_layer_contract_of_disentangled_attention(tmp_path):
    run_layer_contract(
        DisentangledAttention,
        lambda dtype: {**attention_settings(dtype), "untie_cls": True, "variant": "released"},
        {"hidden_states": HIDDEN, "shared_positions": waves(10, 11)},
        output_shape=(3, 7, 11),
        num_weights=11,
        num_states=1,
        folder=tmp_path,
    )
