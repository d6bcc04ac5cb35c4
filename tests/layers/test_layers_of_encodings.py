"""Layers of the position encodings since 2021, and what impossible settings of them say."""

import keras
import numpy as np
import pytest
from keras import ops
from keras_tupe.layers.attention.backend import vector_jacobian_product
from layer_contract import run_layer_contract
from tolerances import in_float64

from keras_tupe.positions.alibi import AlibiBias
from keras_tupe.positions.data_dependent_alibi import ForgetfulAttention
from keras_tupe.positions.fire import FireBias
from keras_tupe.positions.kerple import KerpleBias
from keras_tupe.positions.pope import PolarAngles, PolarAttention
from keras_tupe.positions.rope import RotaryAngles, RotaryAttention
from keras_tupe.positions.sandwich import SandwichBias

HIDDEN = np.random.default_rng(0).normal(size=(3, 7, 11)).astype("float32")
NOTHING = np.zeros((1, 7, 4))


def attention_settings(dtype):
    return {"num_heads": 2, "key_dim": 5, "dropout": 0.1, "untie_cls": True}


def waves(*shape):
    return np.random.default_rng(1).normal(size=shape).astype("float32")


@pytest.mark.slow
def test_layer_contract_of_learned_slopes(tmp_path):
    run_layer_contract(
        AlibiBias,
        lambda dtype: {"num_heads": 6, "learned": True, "sides": 2},
        {"hidden_states": HIDDEN},
        output_shape=(1, 6, 7, 7),
        num_weights=1,
        folder=tmp_path,
        at_least_float32=True,
    )


def test_layer_contract_of_kerple(tmp_path):
    run_layer_contract(
        KerpleBias,
        lambda dtype: {
            "num_heads": 2,
            "kernel": "power",
            "initializer": keras.initializers.RandomUniform(-1.0, 1.0),
        },
        {"hidden_states": HIDDEN},
        output_shape=(1, 2, 7, 7),
        num_weights=2,
        folder=tmp_path,
        at_least_float32=True,
    )


def test_layer_contract_of_sandwich(tmp_path):
    run_layer_contract(
        SandwichBias,
        lambda dtype: {"num_heads": 2, "width": 6},
        {"hidden_states": HIDDEN},
        output_shape=(1, 2, 7, 7),
        num_weights=0,
        folder=tmp_path,
        is_position_term=True,
    )


def test_layer_contract_of_fire(tmp_path):
    run_layer_contract(
        FireBias,
        lambda dtype: {"num_heads": 2, "threshold": 3.5, "width": 5},
        {"hidden_states": HIDDEN},
        output_shape=(1, 2, 7, 7),
        num_weights=3,
        folder=tmp_path,
        at_least_float32=True,
    )


def test_fire_of_unknown_lengths_is_that_of_known_ones(tensorflow):
    layer = FireBias(3, threshold=9.0, width=5)
    layer.build((1, None, 4))
    layer.log_factors.assign([[0.3], [-0.2]])

    @tensorflow.function(
        input_signature=[
            tensorflow.TensorSpec((1, None, 4)),
            tensorflow.TensorSpec((1, 3, None, None)),
        ]
    )
    def bias_and_gradients(hidden_states, upstream):
        with tensorflow.GradientTape() as tape:
            bias = layer(hidden_states)
        weights = [weight.value for weight in layer.trainable_variables]
        return bias, tape.gradient(bias, weights, upstream)

    for length in (1, 64, 65, 130):
        upstream = tensorflow.constant(waves(1, 3, length, length))
        with tensorflow.GradientTape() as tape:
            bias = layer(np.zeros((1, length, 4), "float32"))
        weights = [weight.value for weight in layer.trainable_variables]
        wanted = bias, tape.gradient(bias, weights, upstream)
        found = bias_and_gradients(np.zeros((1, length, 4), "float32"), upstream)
        for one, other in zip(*map(tensorflow.nest.flatten, (found, wanted)), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("length", [60, 130])  # within a block of queries; two blocks and a part
def test_gradients_of_fire_equal_numerical_ones(length):
    layer = FireBias(3, threshold=9.0, width=5, dtype="float64")
    layer.build((1, length, 4))
    first = [waves(*weight.shape).astype("float64") for weight in layer.weights]
    direction = [np.cos(1 + np.arange(x.size)).reshape(x.shape) for x in first]
    upstream = np.random.default_rng(2).normal(size=(1, 3, length, length))

    def answer(weights):
        return layer.stateless_call(weights, [], np.zeros((1, length, 4)))[0]

    def moved(step):
        weights = [x + step * y for x, y in zip(first, direction, strict=True)]
        return np.sum(ops.convert_to_numpy(answer(weights)) * upstream)

    _, pull_back = vector_jacobian_product(answer, [ops.convert_to_tensor(x) for x in first])
    gradients = map(ops.convert_to_numpy, pull_back(ops.convert_to_tensor(upstream)))
    found = sum(np.sum(x * y) for x, y in zip(gradients, direction, strict=True))
    numerical = (moved(1e-6) - moved(-1e-6)) / 2e-6
    np.testing.assert_allclose(found, numerical, rtol=1e-6)


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


# By hand


def set_all(layer, **values):
    layer.build(NOTHING.shape)
    for name, value in values.items():
        getattr(layer, name).assign(value)


def test_kernels_by_hand():
    one = np.log(np.e - 1)  # whose softplus is 1
    layer = KerpleBias(1, dtype="float64")
    set_all(layer, magnitude=[one], growth=[one])
    row = ops.convert_to_numpy(layer(NOTHING))[0, 0, 2, :4]
    np.testing.assert_allclose(row, -np.log([3, 2, 1, 2]), atol=in_float64(1e-14))
    layer = KerpleBias(1, kernel="power", dtype="float64")
    set_all(layer, magnitude=[one], growth=[0.0])  # a power of 1: ALiBi of slope 1
    row = ops.convert_to_numpy(layer(NOTHING))[0, 0, 2, :4]
    np.testing.assert_allclose(row, [-2, -1, 0, -1], atol=in_float64(1e-14))


def test_the_first_sides_of_alibi_are_mirrored_and_what_is_learned_begins_there():
    for learned in (False, True):
        bias = AlibiBias(4, learned=learned, sides=2, dtype="float64")(NOTHING)
        bias = ops.convert_to_numpy(bias)[0]
        np.testing.assert_allclose(bias[:, 1, 0], -(0.25 ** np.arange(1, 5)), rtol=1e-6)
        np.testing.assert_allclose(bias[:, 0, 1], bias[::-1, 1, 0], rtol=1e-12)


def test_sandwich_has_the_rank_of_its_waves_and_falls_with_distance():
    layer = SandwichBias(2, width=4, dtype="float64")
    bias = ops.convert_to_numpy(layer(np.zeros((1, 40, 4))))[0]
    assert layer.bias_parts(np.zeros((1, 40, 4)))["query"].shape == (2, 40, 5)
    np.testing.assert_allclose(bias[1], bias[0] / 2, atol=in_float64(1e-14))
    # w = 4: 10000^(2/4) = 100 and 10000^(4/4) = 10000
    wanted = (np.cos(3 / 100) + np.cos(3 / 10000) - 2) / 4
    np.testing.assert_allclose(bias[0, 5, 8], wanted, atol=in_float64(1e-12))


def test_fire_is_of_the_distance_below_its_threshold_and_of_the_share_beyond():
    layer = FireBias(1, threshold=4, width=1, dtype="float64")
    set_all(layer, hidden=[[1.0], [0.0]], output_kernel=[[1.0]], log_factors=[[np.log(10)], [0]])
    bias = ops.convert_to_numpy(layer(np.zeros((1, 12, 4))))[0, 0]
    np.testing.assert_allclose(bias, bias.T, atol=1e-14)
    near = bias[:5, :5]
    np.testing.assert_allclose(near[1:, 1:], near[:-1, :-1], atol=1e-14)
    np.testing.assert_allclose(near[0, 3], np.log(4) / np.log(5), rtol=1e-5)
    np.testing.assert_allclose(bias[0, 4:], 1, atol=1e-5)  # however far
    assert bias[11, 8] < bias[4, 1]


# What does not fit


@pytest.mark.parametrize(
    ("layer", "settings", "message"),
    [
        (KerpleBias, {"num_heads": 2, "kernel": "exp"}, r"one of \['log', 'power'\].*kernel='exp'"),
        (SandwichBias, {"num_heads": 2, "width": 5}, "even integer >= 2.*width=5"),
        (SandwichBias, {"num_heads": 2, "heads": [-1]}, r"from 0 to 1.*heads=\[-1\]"),
        (SandwichBias, {"num_heads": 2, "heads": [0, 2]}, r"from 0 to 1.*heads=\[0, 2\]"),
        (AlibiBias, {"num_heads": 2, "heads": [0.5]}, r"from 0 to 1.*heads=\[0.5\]"),
        (FireBias, {"num_heads": 2, "threshold": 0}, "a positive number.*threshold=0"),
        (FireBias, {"num_heads": 2, "threshold": True}, "a positive number.*threshold=True"),
        (FireBias, {"num_heads": 2, "threshold": 9, "width": 0}, "positive integer.*width=0"),
        (AlibiBias, {"num_heads": 2, "sides": 3}, "2 for one to each side.*sides=3"),
        (PolarAngles, {"key_dim": 2, "theta": 1}, "a number above 1.*theta=1"),
        (RotaryAngles, {"key_dim": 2, "theta": "10000"}, "a number above 1.*theta='10000'"),
        (RotaryAngles, {"key_dim": 2, "partial": 0}, "above 0 and at most 1.*partial=0"),
        (RotaryAngles, {"key_dim": 2, "partial": 1.5}, "above 0 and at most 1.*partial=1.5"),
        (RotaryAngles, {"key_dim": 2, "scaling": "dynamic"}, "'ntk', 'yarn'.*scaling='dynamic'"),
        (RotaryAngles, {"key_dim": 2, "factor": 0.5}, "a number above 1, or 1.*factor=0.5"),
        (RotaryAngles, {"key_dim": 2, "factor": 2}, "choose 'linear'.*scaling='none', factor=2"),
        (RotaryAngles, {"key_dim": 2, "scaling": "ntk"}, "set `factor`.*factor=1.0"),
        (
            RotaryAngles,
            {"key_dim": 2, "scaling": "yarn", "factor": 2},
            "needs `original_length`.*original_length=None",
        ),
        (
            RotaryAngles,
            {"key_dim": 2, "scaling": "linear", "factor": 2, "original_length": 9},
            "read by scaling='yarn' alone.*scaling='linear', original_length=9",
        ),
        (RotaryAngles, {"key_dim": 2, "local_theta": -2}, "a number above 1.*local_theta=-2"),
    ],
)
def test_settings_that_do_not_fit_are_one_sentence(layer, settings, message):
    with pytest.raises(ValueError, match=message):
        layer(**settings)
