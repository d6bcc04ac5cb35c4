import math

import keras
import numpy as np
import pytest
from keras import ops
from layer_contract import run_layer_contract
from tolerances import in_float64

from keras_tupe.layers import MaskedLMHead, TokenEmbedding


def test_layer_contract(tmp_path):
    run_layer_contract(
        MaskedLMHead,
        lambda dtype: {
            "token_embedding": TokenEmbedding(13, 10, dtype=dtype, name="token_embedding"),
            "layer_norm_epsilon": 1e-3,
            "kernel_initializer": "random_normal",
        },
        {
            "hidden_states": np.random.normal(size=(3, 7, 10)).astype("float32"),
            "mask_positions": np.array([[1, 2], [0, 6], [5, 5]], "int32"),
        },
        output_shape=(3, 2, 13),
        num_weights=6,
        folder=tmp_path,
        at_least_float32=True,
    )


def scrambled_head(dtype="float64"):
    head = MaskedLMHead(
        TokenEmbedding(13, 10, dtype=dtype, name="embedding"), dtype=dtype, name="h"
    )
    head.build((None, None, 10))
    rng = np.random.default_rng(1)
    for weight in head.weights:
        weight.assign(rng.normal(size=weight.shape))
    return head


def test_logits_equal_the_equation_at_the_given_positions():
    head = scrambled_head()
    w = {weight.path.split("/", 1)[1]: ops.convert_to_numpy(weight) for weight in head.weights}
    (table,) = [ops.convert_to_numpy(v) for v in head.token_embedding.weights]
    x = np.random.normal(size=(3, 7, 10))
    positions = np.array([[1, 2, 0], [0, 6, 6], [5, 4, 3]])
    logits = ops.convert_to_numpy(head(x, mask_positions=positions))
    for b in range(3):
        for slot, position in enumerate(positions[b]):
            inner = x[b, position] @ w["dense/kernel"] + w["dense/bias"]
            inner = inner * (1 + np.vectorize(math.erf)(inner / math.sqrt(2))) / 2
            inner = (inner - inner.mean()) / math.sqrt(inner.var() + 1e-5)
            inner = inner * w["layer_norm/gamma"] + w["layer_norm/beta"]
            expected = table @ inner + w["output_bias"]
            np.testing.assert_allclose(logits[b, slot], expected, atol=in_float64(1e-11))


def test_the_last_matrix_is_the_embedding_itself():
    head = scrambled_head()
    x = np.random.normal(size=(3, 7, 10))
    before = ops.convert_to_numpy(head(x, mask_positions=np.array([[1], [1], [1]])))
    table = head.token_embedding.embeddings
    table.assign(table * 2)
    after = ops.convert_to_numpy(head(x, mask_positions=np.array([[1], [1], [1]])))
    bias = ops.convert_to_numpy(head.output_bias)
    np.testing.assert_allclose(after - bias, 2 * (before - bias), atol=in_float64(1e-11))


@pytest.mark.parametrize("dtype", ["mixed_float16", "mixed_bfloat16"])
def test_the_output_bias_is_not_rounded_to_half_precision(dtype):
    head = scrambled_head(dtype)
    for weight in head.weights:
        if not weight.path.endswith("output_bias"):
            weight.assign(ops.zeros(weight.shape))
    logits = head(np.zeros((1, 3, 10), "float32"), mask_positions=np.array([[1]]))
    expected = ops.convert_to_numpy(head.output_bias)
    np.testing.assert_allclose(ops.convert_to_numpy(logits)[0, 0], expected, atol=1e-6)


def test_a_model_with_a_tied_embedding_is_still_tied_after_loading(tmp_path):
    embedding = TokenEmbedding(13, 10, name="token_embedding")
    ids = keras.Input((None,), dtype="int32")
    where = keras.Input((None,), dtype="int32")
    head = MaskedLMHead(embedding, name="mlm_head")
    model = keras.Model([ids, where], head(embedding(ids), mask_positions=where))
    arrays = [np.array([[1, 2, 3]]), np.array([[1, 2]])]
    model.save(tmp_path / "tied.keras")
    loaded = keras.saving.load_model(tmp_path / "tied.keras")
    np.testing.assert_array_equal(
        ops.convert_to_numpy(loaded(arrays)), ops.convert_to_numpy(model(arrays))
    )
    assert loaded.get_layer("mlm_head").token_embedding is loaded.get_layer("token_embedding")
