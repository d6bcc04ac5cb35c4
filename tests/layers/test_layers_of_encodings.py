"""Layers of the position encodings since 2021, and what impossible settings of them say."""

import numpy as np
import pytest
from layer_contract import run_layer_contract

from keras_tupe.positions.data_dependent_alibi import ForgetfulAttention
from keras_tupe.positions.pope import PolarAngles, PolarAttention
from keras_tupe.positions.rope import RotaryAngles, RotaryAttention

HIDDEN = np.random.default_rng(0).normal(size=(3, 7, 11)).astype("float32")
NOTHING = np.zeros((1, 7, 4))


def attention_settings(dtype):
    return {"num_heads": 2, "key_dim": 5, "dropout": 0.1, "untie_cls": True}


def waves(*shape):
    return np.random.default_rng(1).normal(size=shape).astype("float32")


def test_layer_contract_of_polar_angles(tmp_path):
    run_layer_contract(
        PolarAngles,
        lambda dtype: {"key_dim": 5, "theta": 50.0},
        {"hidden_states": HIDDEN},
        output_shape=[(7, 5), (7, 5)],
        num_weights=0,
        folder=tmp_path,
        is_position_term=True,
    )


def test_layer_contract_of_polar_attention(tmp_path):
    run_layer_contract(
        PolarAttention,
        attention_settings,
        {"hidden_states": HIDDEN, "shared_positions": list(waves(2, 7, 5))},
        output_shape=(3, 7, 11),
        num_weights=9,
        num_states=1,
        folder=tmp_path,
    )


def test_layer_contract_of_forgetful_attention(tmp_path):
    run_layer_contract(
        ForgetfulAttention,
        lambda dtype: {**attention_settings(dtype), "bidirectional": False},
        {"hidden_states": HIDDEN},
        output_shape=(3, 7, 11),
        num_weights=10,
        num_states=1,
        folder=tmp_path,
        dead_weights=["key/bias"],
    )


def test_layer_contract_of_angles_for_longer_texts(tmp_path):
    run_layer_contract(
        RotaryAngles,
        lambda dtype: {
            "key_dim": 9,
            "theta": 500.0,
            "partial": 0.7,
            "scaling": "yarn",
            "factor": 2.5,
            "original_length": 40,
            "local_theta": 30.0,
        },
        {"hidden_states": HIDDEN},
        output_shape=[(7, 3)] * 4,
        num_weights=0,
        folder=tmp_path,
        is_position_term=True,
    )


@pytest.mark.slow
def test_layer_contract_of_local_rotary_attention(tmp_path):
    run_layer_contract(
        RotaryAttention,
        lambda dtype: {**attention_settings(dtype), "is_local": True},
        {"hidden_states": HIDDEN, "shared_positions": [waves(7, 2) for _ in range(4)]},
        output_shape=(3, 7, 11),
        num_weights=8,
        num_states=1,
        folder=tmp_path,
    )


# What does not fit


@pytest.mark.parametrize(
    ("layer", "settings", "message"),
    [
        (PolarAngles, {"key_dim": 2, "theta": 1}, "a number above 1.*theta=1"),
        (RotaryAngles, {"key_dim": 2, "theta": "10000"}, "a number above 1.*theta='10000'"),
        (RotaryAngles, {"key_dim": 2, "partial": 0}, "above 0 and at most 1.*partial=0"),
        (RotaryAngles, {"key_dim": 2, "partial": 1.5}, "above 0 and at most 1.*partial=1.5"),
        (RotaryAngles, {"key_dim": 2, "scaling": "dynamic"}, "'ntk', 'yarn'.*scaling='dynamic'"),
        (RotaryAngles, {"key_dim": 2, "factor": 0.5}, "a number at least 1.*factor=0.5"),
        (
            RotaryAngles,
            {"key_dim": 2, "factor": 2},
            "needs scaling, 'linear'.*scaling='none', factor=2",
        ),
        (RotaryAngles, {"key_dim": 2, "scaling": "ntk"}, "needs `factor`.*factor=1.0"),
        (
            RotaryAngles,
            {"key_dim": 2, "scaling": "yarn", "factor": 2},
            "needs `original_length`.*original_length=None",
        ),
        (
            RotaryAngles,
            {"key_dim": 2, "scaling": "linear", "factor": 2, "original_length": 9},
            "read by 'yarn' alone.*scaling='linear'.*original_length=9",
        ),
        (RotaryAngles, {"key_dim": 2, "local_theta": -2}, "a number above 1.*local_theta=-2"),
    ],
)
def test_settings_that_do_not_fit_are_one_sentence(layer, settings, message):
    with pytest.raises(ValueError, match=message):
        layer(**settings)
