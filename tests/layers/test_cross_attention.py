"""Attention of one sequence to another: equation, padding, ways of the core."""

import numpy as np
import pytest
from core_ways import go
from keras import ops
from layer_contract import run_layer_contract
from position_cases import scramble
from tolerances import in_float64

from keras_tupe.layers import CrossAttention

MASK = np.array([[1] * 5, [1] * 3 + [0] * 2, [0, 1, 0, 1, 0]], "int32")


def states(length, width=11, seed=0):
    return np.random.default_rng(seed).normal(size=(3, length, width))


def test_layer_contract(tmp_path):
    run_layer_contract(
        CrossAttention,
        lambda dtype: {
            "num_heads": 2,
            "key_dim": 5,
            "dropout": 0.1,
            "kernel_initializer": "random_normal",
        },
        {
            "hidden_states": states(7).astype("float32"),
            "encoder_states": states(5, 13, seed=1).astype("float32"),
            "encoder_padding_mask": MASK,
        },
        output_shape=(3, 7, 11),
        num_weights=8,
        num_states=1,
        folder=tmp_path,
        dead_weights=["key/bias"],
    )


def attention(**kwargs):
    layer = CrossAttention(2, 5, dtype="float64", name="cross", **kwargs)
    layer.build((3, 7, 11), (3, 5, 13))
    scramble(layer.weights)
    return layer


def equation(layer, x, m, mask):
    """The answer, row by row and head by head."""
    w = {
        weight.path.removeprefix("cross/"): ops.convert_to_numpy(weight) for weight in layer.weights
    }
    out = np.zeros((*x.shape[:2], x.shape[2]))
    for row, head in np.ndindex(len(x), layer.num_heads):
        query, key, value = (
            y @ w[f"{name}/kernel"][:, head] + w[f"{name}/bias"][head]
            for y, name in ((x[row], "query"), (m[row], "key"), (m[row], "value"))
        )
        weights = np.exp(query @ key.T / np.sqrt(layer.key_dim)) * mask[row]
        context = weights @ value / np.maximum(weights.sum(-1, keepdims=True), 1e-300)
        out[row] += context @ w["output/kernel"][head]
    return out + w["output/bias"]


@pytest.mark.parametrize("mask", [None, MASK, MASK.astype(bool), MASK * [[1], [0], [1]]])
@pytest.mark.parametrize("way", ["whole", "blocks", "loop"])
def test_the_layer_equals_its_equation(mask, way, monkeypatch):
    go(way, monkeypatch)
    layer, x, m = attention(), states(7), states(5, 13, seed=1)
    wanted = equation(layer, x, m, np.ones_like(MASK) if mask is None else mask)
    got = ops.convert_to_numpy(layer(x, m, encoder_padding_mask=mask))
    assert np.ptp(wanted) > 1
    np.testing.assert_allclose(got, wanted, rtol=0, atol=in_float64(1e-12))


def test_a_source_without_a_token_gives_the_output_bias():
    layer = attention()
    got = ops.convert_to_numpy(layer(states(7), states(5, 13), encoder_padding_mask=MASK * 0))
    bias = ops.convert_to_numpy(layer.output_dense.bias)
    np.testing.assert_array_equal(got, np.broadcast_to(bias, got.shape))


def test_what_stands_in_the_padding_of_a_source_is_invisible_to_the_bit():
    layer, x, m = attention(), states(7), states(5, 13, seed=1)
    other = np.where(MASK[..., None], m, 100 * states(5, 13, seed=2))
    got = [ops.convert_to_numpy(layer(x, y, encoder_padding_mask=MASK)) for y in (m, other)]
    np.testing.assert_array_equal(*got)
    assert (got[0] != ops.convert_to_numpy(layer(x, other))).any()


def test_keys_and_values_are_made_once_for_many_calls():
    layer, x, m = attention(), states(7), states(5, 13, seed=1)
    kept = layer.keys_and_values(m)
    assert [tuple(part.shape) for part in kept] == [(2, 3, 5, 5)] * 2
    wanted = ops.convert_to_numpy(layer(x, m, encoder_padding_mask=MASK))
    for i in range(7):  # each token on its own: it sees the source alone
        got = ops.convert_to_numpy(layer.attended(x[:, i : i + 1], kept, MASK))
        np.testing.assert_allclose(got[:, 0], wanted[:, i], rtol=0, atol=in_float64(1e-12))


def test_scores_are_dropped_in_training_only():
    layer, x, m = attention(dropout=0.5), states(7), states(5, 13, seed=1)
    still, same = (ops.convert_to_numpy(layer(x, m, training=False)) for _ in range(2))
    np.testing.assert_array_equal(still, same)
    one, other = (ops.convert_to_numpy(layer(x, m, training=True)) for _ in range(2))
    assert np.abs(one - still).max() > 1e-3
    assert np.abs(one - other).max() > 1e-3


@pytest.mark.parametrize("sizes", [(0, 5), (2, -1), (2.0, 5)])
def test_impossible_sizes_are_refused(sizes):
    with pytest.raises(ValueError, match="must be a positive integer"):
        CrossAttention(*sizes)


@pytest.mark.parametrize("share", [1, -0.1])
def test_impossible_dropout_is_refused(share):
    with pytest.raises(ValueError, match="(?i)received: "):
        CrossAttention(2, 5, dropout=share)
