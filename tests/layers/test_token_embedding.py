import keras
import numpy as np
import pytest
from keras import ops
from layer_contract import run_layer_contract

from keras_tupe.layers import TokenEmbedding


def test_layer_contract(tmp_path):
    run_layer_contract(
        TokenEmbedding,
        lambda dtype: {"vocabulary_size": 13, "hidden_dim": 5, "initializer": "random_normal"},
        {"inputs": np.array([[1, 12, 0], [3, 3, 7]], "int32")},
        output_shape=(2, 3, 5),
        num_weights=1,
        folder=tmp_path,
    )


def test_forward_looks_rows_up_and_reverse_multiplies_with_all_of_them():
    layer = TokenEmbedding(13, 5, dtype="float64")
    ids = np.array([[1, 12, 0], [3, 3, 7]])
    vectors = ops.convert_to_numpy(layer(ids))
    table = ops.convert_to_numpy(layer.embeddings)
    np.testing.assert_array_equal(vectors, table[ids])
    logits = ops.convert_to_numpy(layer(vectors, reverse=True))
    np.testing.assert_allclose(logits, vectors @ table.T, atol=1e-12)
    symbolic = layer(keras.Input((None, 5)), reverse=True)
    assert symbolic.shape == (None, None, 13)


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


@pytest.mark.parametrize("bad", [13, -1, 10**6])
def test_ids_outside_the_vocabulary_are_refused_in_eager_calls(bad):
    layer = TokenEmbedding(13, 5)
    message = rf"\[0, vocabulary_size=13\)(.|\n)*Received: token id={bad}"
    with pytest.raises(ValueError, match=message):
        layer(np.array([[1, 12], [bad, 0]]))


@pytest.mark.parametrize("ids", [np.array([[1.0]]), np.array([[True]])])
def test_ids_that_are_not_integers_are_refused(ids):
    layer = TokenEmbedding(13, 5)
    with pytest.raises(
        TypeError, match=r"must be integers(.|\n)*Cast them to int32(.|\n)*Received"
    ):
        layer(ids)
    with pytest.raises(TypeError, match="must be integers"):
        layer(keras.Input((3,), dtype=str(ids.dtype)))


@pytest.mark.parametrize("name", ["vocabulary_size", "hidden_dim"])
@pytest.mark.parametrize("value", [0, -1, 2.5, "7", True])
def test_impossible_sizes_are_refused(name, value):
    sizes = {"vocabulary_size": 13, "hidden_dim": 5, name: value}
    with pytest.raises(ValueError, match=f"`{name}` must be a positive integer. Received: {name}="):
        TokenEmbedding(**sizes)
