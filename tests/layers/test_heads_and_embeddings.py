"""Heads and token embeddings; what those of replaced tokens are for is tested with the model."""

import keras
import numpy as np
import pytest
from keras import ops
from tolerances import in_float64

from keras_tupe.layers import (
    AbsolutePositionEmbedding,
    ClsReset,
    DisentangledEmbedding,
    MaskedLMHead,
    TokenEmbedding,
)
from keras_tupe.positions.sinusoidal import SinusoidalPositionEmbedding

IDS = np.array([[1, 12, 0], [3, 3, 7]], "int32")


@pytest.mark.parametrize("dtype", ["mixed_float16", "mixed_bfloat16"])
def test_the_output_bias_is_not_rounded_to_half_precision(dtype):
    head = MaskedLMHead(TokenEmbedding(13, 10, dtype=dtype, name="e"), dtype=dtype, name="h")
    head.build((None, None, 10))
    for weight in head.weights:
        weight.assign(ops.zeros(weight.shape))
    bias = np.random.default_rng(1).normal(size=13)
    head.output_bias.assign(bias)
    logits = head(np.zeros((1, 3, 10), "float32"), mask_positions=np.array([[1]]))
    np.testing.assert_allclose(ops.convert_to_numpy(logits)[0, 0], bias, atol=1e-6)


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


@pytest.mark.parametrize("width", [10, 11])
def test_even_channels_are_sines_and_odd_ones_cosines(width):
    i, t = np.arange(600)[:, None], np.arange(width) // 2
    angle = i / 10000 ** (2 * t / width)
    wanted = np.where(np.arange(width) % 2 == 0, np.sin(angle), np.cos(angle))
    for scale, dtype, atol in [
        *((scale, "float64", in_float64(1e-12)) for scale in (1.0, 0.3)),
        *((1.0, f"mixed_{half}", atol) for half, atol in (("float16", 1e-3), ("bfloat16", 5e-3))),
    ]:
        layer = SinusoidalPositionEmbedding(scale=scale, dtype=dtype)  # angles are in float32
        got = ops.convert_to_numpy(ops.cast(layer(np.zeros((1, 600, width))), "float64"))[0]
        np.testing.assert_allclose(got, scale * wanted, atol=atol)


def test_new_tables_have_deviation_0_02_and_new_thetas_are_zero():
    layer, reset = AbsolutePositionEmbedding(100), ClsReset()
    layer.build((None, None, 100))
    assert np.std(ops.convert_to_numpy(layer.embeddings)) == pytest.approx(0.02, rel=0.05)
    reset.build((1, 2, 7, 7))
    assert not ops.convert_to_numpy(reset.theta).any()
