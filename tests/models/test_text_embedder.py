"""The model that turns texts into vectors."""

import numpy as np
import pytest
from embedder_cases import TEXTS, text_embedder
from keras import ops
from position_cases import Case, encoder, inputs, random_ids
from tolerances import in_float64

from keras_tupe.convert import graft_position
from keras_tupe.models import TupeTextEmbedder, extend_positions

LENGTHS = [7, 4, 1]


def embedder(dtype="float64", name="tupe_r", **kwargs):
    return TupeTextEmbedder(encoder(Case(name), dtype, num_layers=1), **kwargs)


def by_hand(states, length, pooling, normalize):
    """The equation of the docstring, for one row."""
    real = states[:length]
    vector = {"mean": sum(real) / length, "cls": real[0], "max": np.max(real, axis=0)}[pooling]
    return vector / np.sqrt(sum(vector * vector)) if normalize else vector


@pytest.mark.parametrize("pooling", ["mean", "cls", "max"])
@pytest.mark.parametrize("normalize", [False, True])
def test_vectors_are_pooled_from_real_tokens(pooling, normalize):
    model = embedder(pooling=pooling, normalize=normalize)
    given = inputs(random_ids(3, 7), LENGTHS)
    states = ops.convert_to_numpy(model.backbone(given)["sequence_output"])
    wanted = [by_hand(rows, n, pooling, normalize) for rows, n in zip(states, LENGTHS, strict=True)]
    np.testing.assert_allclose(model(given), wanted, atol=in_float64(1e-12))
    assert len(model.weights) == len(model.backbone.weights)


def test_embed_sorts_and_cuts_batches_and_gives_the_same_vectors_in_the_same_order():
    model, given = embedder(name="absolute"), inputs(random_ids(5, 15), [3, 15, 1, 9, 4])
    found = model.embed(given, batch_size=2)
    assert isinstance(found, np.ndarray)
    np.testing.assert_allclose(found, model(given), atol=in_float64(1e-12))
    found = embedder("mixed_bfloat16").embed(inputs(random_ids(3, 7), LENGTHS))
    assert found.dtype == "float32"
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)


def test_texts_become_vectors_as_their_rows_do(tensorflow):
    model = text_embedder()
    found = model.embed(TEXTS, batch_size=2)
    np.testing.assert_allclose(found, model(model.preprocessor(TEXTS)), atol=1e-6)
    np.testing.assert_allclose(model.embed("d"), found[1], atol=1e-6)
    assert model.embed([]).shape == (0, 8)
    assert np.abs(found[0] - found[1]).max() > 1e-3


@pytest.mark.slow
def test_predict_and_data_sets_give_what_embed_does(tensorflow):
    model = text_embedder()
    for texts in (TEXTS, tensorflow.data.Dataset.from_tensor_slices(TEXTS).batch(3)):
        found = model.predict(texts, verbose=0)
        np.testing.assert_allclose(found, model.embed(TEXTS), atol=1e-6)


def test_an_empty_text_is_refused(tensorflow):
    model = text_embedder()
    for empty in ("", "  ", "\t\n", "\u200b"):
        with pytest.raises(ValueError, match="must have at least one token.*Received: text 1 = "):
            model.embed(["a", empty])
    with pytest.raises(ValueError, match="must have at least one token"):
        model.predict(["a", " \t"], verbose=0)


def test_what_cannot_be_embedded_is_refused():
    model, given = embedder("float32"), inputs(random_ids(3, 7), LENGTHS)
    given["padding_mask"] = given["padding_mask"] * np.array([[1], [0], [1]], "int32")
    for way in (model, model.embed):
        with pytest.raises(ValueError, match="at least one real token.*Received: row 1"):
            way(given)
    with pytest.raises(ValueError, match="Texts need a preprocessor"):
        model.embed("a")
    for wrong in (3, [3], None):
        with pytest.raises(TypeError, match="takes a text, a batch of texts.*Received"):
            model.embed(wrong)
    with pytest.raises(ValueError, match=r"one of \['mean', 'cls', 'max'\].*'weightedmean'"):
        embedder("float32", pooling="weightedmean")


def test_other_positions_and_longer_tables_keep_the_pooling():
    model = embedder("float32", pooling="max", normalize=False)
    longer, (grafted, _) = extend_positions(model, 31), graft_position(model, "alibi")
    for changed in (longer, grafted):
        assert (changed.pooling, changed.normalize) == ("max", False)
    assert longer(inputs(random_ids(1, 31))).shape == (1, model.backbone.hidden_dim)
