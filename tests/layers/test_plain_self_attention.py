import numpy as np
from keras import ops
from layer_contract import run_layer_contract

from keras_tupe.layers import PlainSelfAttention

X = np.random.default_rng(0).normal(size=(3, 7, 11)).astype("float32")


def test_layer_contract(tmp_path):
    run_layer_contract(
        PlainSelfAttention,
        lambda dtype: {
            "num_heads": 2,
            "key_dim": 5,
            "dropout": 0.1,
            "kernel_initializer": "random_normal",
        },
        {
            "hidden_states": X,
            "position_bias": np.random.normal(size=(1, 2, 7, 7)).astype("float32"),
            "padding_mask": np.array([[1] * 7, [1] * 5 + [0] * 2, [0] * 7], "int32"),
        },
        output_shape=(3, 7, 11),
        num_weights=8,
        num_states=1,
        folder=tmp_path,
        dead_weights=["key/bias"],
    )


def test_logits_are_scaled_for_one_term_and_the_bias_is_not():
    layer = PlainSelfAttention(2, 5, dtype="float64")
    query, key = np.random.normal(size=(2, 3, 7, 2, 5))
    bias = np.random.normal(size=(1, 2, 7, 7))
    content = np.einsum("bthd,bshd->bhts", query, key) / np.sqrt(5)
    with_bias = ops.convert_to_numpy(layer.logits(query, key, bias, None))
    np.testing.assert_allclose(with_bias, content + bias, atol=1e-12)
    without = ops.convert_to_numpy(layer.logits(query, key, None, None))
    np.testing.assert_allclose(without, content, atol=1e-12)
