import numpy as np
import pytest
from keras import ops
from layer_contract import run_layer_contract

from keras_tupe.layers import UntiedPositionalAttention


def test_layer_contract(tmp_path):
    run_layer_contract(
        UntiedPositionalAttention,
        lambda dtype: {
            "num_heads": 2,
            "key_dim": 5,
            "dropout": 0.1,
            "kernel_initializer": "random_normal",
        },
        {
            "hidden_states": np.random.normal(size=(3, 7, 11)).astype("float32"),
            "position_bias": np.random.normal(size=(1, 2, 7, 7)).astype("float32"),
            "padding_mask": np.array([[1] * 7, [1] * 5 + [0] * 2, [0] * 7], "int32"),
        },
        output_shape=(3, 7, 11),
        num_weights=8,
        num_states=1,
        folder=tmp_path,
        dead_weights=["key/bias"],
    )


def test_content_is_scaled_for_two_terms_and_the_bias_is_not():
    layer = UntiedPositionalAttention(2, 5, dtype="float64")
    query, key = np.random.normal(size=(2, 3, 7, 2, 5))
    bias = np.random.normal(size=(1, 2, 7, 7))
    logits = ops.convert_to_numpy(layer.logits(query, key, bias, None))
    expected = np.einsum("bthd,bshd->bhts", query, key) / np.sqrt(2 * 5) + bias
    np.testing.assert_allclose(logits, expected, atol=1e-12)


def test_a_call_without_a_bias_is_refused():
    message = r"`PlainSelfAttention`(.|\n)*Received: position_bias=None"
    with pytest.raises(ValueError, match=message):
        UntiedPositionalAttention(2, 5)(np.zeros((1, 3, 10)))
