"""Heads and token embeddings; what those of replaced tokens are for is tested with the model."""

import math

import keras
import numpy as np
import pytest
from keras import ops
from tolerances import in_float64

from keras_tupe.layers import DisentangledEmbedding, MaskedLMHead, TokenEmbedding

IDS = np.array([[1, 12, 0], [3, 3, 7]], "int32")


def scrambled_head(dtype="float64"):
    head = MaskedLMHead(TokenEmbedding(13, 10, dtype=dtype, name="e"), dtype=dtype, name="h")
    head.build((None, None, 10))
    rng = np.random.default_rng(1)
    for weight in head.weights:
        weight.assign(rng.normal(size=weight.shape))
    return head


def test_logits_equal_the_equation_at_the_given_positions_with_the_embedding_itself():
    head = scrambled_head()
    w = {weight.path.split("/", 1)[1]: ops.convert_to_numpy(weight) for weight in head.weights}
    x = np.random.normal(size=(3, 7, 10))
    where = np.array([[1, 2, 0], [0, 6, 6], [5, 4, 3]])
    for factor in (1, 2):
        table = head.token_embedding.embeddings
        table.assign(table * factor)
        logits = ops.convert_to_numpy(head(x, mask_positions=where))
        inner = np.take_along_axis(x, where[..., None], axis=1) @ w["dense/kernel"]
        inner = inner + w["dense/bias"]
        inner = inner * (1 + np.vectorize(math.erf)(inner / math.sqrt(2))) / 2
        deviation = np.sqrt(inner.var(-1, keepdims=True) + 1e-5)
        inner = (inner - inner.mean(-1, keepdims=True)) / deviation
        inner = inner * w["layer_norm/gamma"] + w["layer_norm/beta"]
        expected = inner @ ops.convert_to_numpy(table).T + w["output_bias"]
        np.testing.assert_allclose(logits, expected, atol=in_float64(1e-11))


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
    ids, where = (keras.Input((None,), dtype="int32") for _ in range(2))
    head = MaskedLMHead(embedding, name="mlm_head")
    model = keras.Model([ids, where], head(embedding(ids), mask_positions=where))
    arrays = [np.array([[1, 2, 3]]), np.array([[1, 2]])]
    model.save(tmp_path / "tied.keras")
    loaded = keras.saving.load_model(tmp_path / "tied.keras")
    answers = [ops.convert_to_numpy(one(arrays)) for one in (loaded, model)]
    np.testing.assert_array_equal(*answers)
    assert loaded.get_layer("mlm_head").token_embedding is loaded.get_layer("token_embedding")


def test_forward_looks_rows_up_and_reverse_multiplies_with_all_of_them():
    layer = TokenEmbedding(13, 5, dtype="float64")
    vectors = ops.convert_to_numpy(layer(IDS))
    table = ops.convert_to_numpy(layer.embeddings)
    np.testing.assert_array_equal(vectors, table[IDS])
    logits = ops.convert_to_numpy(layer(vectors, reverse=True))
    np.testing.assert_allclose(logits, vectors @ table.T, atol=1e-12)
    assert layer(keras.Input((None, 5)), reverse=True).shape == (None, None, 13)


@pytest.mark.parametrize("use", ["forward", "reverse", "both"])
def test_the_gradient_is_dense(tensorflow, use):
    layer = TokenEmbedding(13, 5)
    with tensorflow.GradientTape() as tape:
        out = layer(np.array([[1, 2]]))
        if use != "forward":
            out = layer(out if use == "both" else np.ones((1, 2, 5), "float32"), reverse=True)
        loss = ops.sum(out)
    gradient = tape.gradient(loss, layer.embeddings.value)
    assert isinstance(gradient, tensorflow.Tensor), type(gradient)
    assert gradient.shape == (13, 5)


def test_a_disentangled_embedding_begins_as_its_base():
    base = TokenEmbedding(13, 5, dtype="float64")
    layer = DisentangledEmbedding(base, dtype="float64")
    for difference in (0, 0.25):
        got, wanted = (ops.convert_to_numpy(one(IDS)) for one in (layer, base))
        np.testing.assert_allclose(got, wanted + difference, atol=1e-15)
        layer.difference.assign(np.full((13, 5), 0.25))


@pytest.mark.parametrize("bad", [13, -1, 10**6])
def test_ids_outside_the_vocabulary_are_refused_in_eager_calls(bad):
    message = rf"\[0, vocabulary_size=13\)(.|\n)*Received: token id={bad}"
    with pytest.raises(ValueError, match=message):
        TokenEmbedding(13, 5)(np.array([[1, 12], [bad, 0]]))


@pytest.mark.parametrize("ids", [np.array([[1.0]]), np.array([[True]])])
def test_ids_that_are_not_integers_are_refused(ids):
    layer = TokenEmbedding(13, 5)
    for given in (ids, keras.Input((3,), dtype=str(ids.dtype))):
        with pytest.raises(TypeError, match="must be integers. Cast them to int32"):
            layer(given)


@pytest.mark.parametrize("name", ["vocabulary_size", "hidden_dim"])
@pytest.mark.parametrize("value", [0, 2.5, "7", True])
def test_impossible_sizes_are_refused(name, value):
    sizes = {"vocabulary_size": 13, "hidden_dim": 5, name: value}
    with pytest.raises(ValueError, match=f"`{name}` must be a positive integer. Received: {name}="):
        TokenEmbedding(**sizes)
