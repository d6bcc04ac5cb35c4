import math

import numpy as np
import pytest
from keras import ops
from layer_contract import run_layer_contract
from tolerances import in_float64

from keras_tupe.layers import EncoderBlock, PlainSelfAttention, UntiedPositionalAttention


def test_layer_contract(tmp_path):
    run_layer_contract(
        EncoderBlock,
        lambda dtype: {
            "attention": UntiedPositionalAttention(2, 5, dtype=dtype, name="attention"),
            "intermediate_dim": 13,
            "normalize_first": True,
            "layer_norm_epsilon": 1e-3,
            "kernel_initializer": "random_normal",
            "activation": "gelu_approximate",
        },
        {
            "hidden_states": np.random.normal(size=(3, 7, 11)).astype("float32"),
            "position_bias": np.random.normal(size=(1, 2, 7, 7)).astype("float32"),
            "padding_mask": np.tile(np.arange(7, dtype="int32") < 5, (3, 1)).astype("int32"),
        },
        output_shape=(3, 7, 11),
        num_weights=16,
        folder=tmp_path,
        dead_weights=["attention/key/bias"],
    )


def test_layer_contract_with_dropout(tmp_path):
    run_layer_contract(
        EncoderBlock,
        lambda dtype: {
            "attention": PlainSelfAttention(2, 5, dropout=0.1, dtype=dtype, name="attention"),
            "intermediate_dim": 13,
            "dropout": 0.1,
        },
        {"hidden_states": np.random.normal(size=(3, 7, 11)).astype("float32")},
        output_shape=(3, 7, 11),
        num_weights=16,
        num_states=3,
        folder=tmp_path,
        dead_weights=["attention/key/bias"],
    )


def layer_norm(x, gamma, beta, epsilon):
    centered = x - x.mean(-1, keepdims=True)
    return gamma * centered / np.sqrt((centered**2).mean(-1, keepdims=True) + epsilon) + beta


@pytest.mark.parametrize("normalize_first", [False, True])
@pytest.mark.parametrize(("epsilon", "activation"), [(1e-5, "gelu"), (0.3, "gelu_approximate")])
def test_the_block_equals_its_equation(normalize_first, epsilon, activation):
    attention = PlainSelfAttention(2, 5, dtype="float64", name="attention")
    block = EncoderBlock(
        attention,
        13,
        normalize_first=normalize_first,
        layer_norm_epsilon=epsilon,
        activation=activation,
        dtype="float64",
        name="b",
    )
    x = np.random.normal(size=(3, 7, 11))
    block.build(x.shape)
    rng = np.random.default_rng(1)
    for weight in block.weights:
        weight.assign(rng.normal(scale=0.5, size=weight.shape))
    w = {weight.path[2:]: ops.convert_to_numpy(weight) for weight in block.weights}

    def norm(name, values):
        return layer_norm(values, w[f"{name}/gamma"], w[f"{name}/beta"], epsilon)

    def attend(values):
        return ops.convert_to_numpy(attention(values))

    def feed_forward(values):
        inner = values @ w["feedforward_intermediate/kernel"] + w["feedforward_intermediate/bias"]
        if activation == "gelu":
            inner = inner * (1 + np.vectorize(math.erf)(inner / math.sqrt(2))) / 2
        else:
            tanh = np.tanh(math.sqrt(2 / math.pi) * (inner + 0.044715 * inner**3))
            inner = inner * (1 + tanh) / 2
        return inner @ w["feedforward_output/kernel"] + w["feedforward_output/bias"]

    if normalize_first:
        y = x + attend(norm("attention_layer_norm", x))
        expected = y + feed_forward(norm("feedforward_layer_norm", y))
    else:
        y = norm("attention_layer_norm", x + attend(x))
        expected = norm("feedforward_layer_norm", y + feed_forward(y))
    np.testing.assert_allclose(ops.convert_to_numpy(block(x)), expected, atol=in_float64(1e-11))


@pytest.mark.parametrize("where", ["attention_dropout", "feedforward_dropout"])
def test_each_sublayer_has_its_dropout(where):
    block = EncoderBlock(PlainSelfAttention(2, 5), 13, dropout=0.5)
    other = {"attention_dropout", "feedforward_dropout"} - {where}
    getattr(block, other.pop()).rate = 0
    x = np.random.normal(size=(3, 7, 11)).astype("float32")
    still = ops.convert_to_numpy(block(x, training=False))
    assert np.abs(ops.convert_to_numpy(block(x, training=True)) - still).max() > 1e-3


def test_impossible_widths_are_refused():
    with pytest.raises(ValueError, match="`intermediate_dim` must be a positive integer"):
        EncoderBlock(PlainSelfAttention(2, 5), 0)
