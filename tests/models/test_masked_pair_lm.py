"""The pre-training model of two tasks: heads, losses, training, files and text."""

import keras
import numpy as np
import pytest
from keras import ops
from pair_cases import END, PAD, START
from position_cases import Case, encoder, inputs, random_ids, scramble
from tolerances import in_float64

from keras_tupe import TupeMaskedPairLM, TupeMaskedPairLMPreprocessor, TupeTokenizer
from keras_tupe.models import TupeMaskedLM

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghij"]
FIRST, SECOND = ["a b c", "d e"], ["f g", "h i j a"]


def pair_lm(dtype="float64", name="tupe_r", **kwargs):
    model = TupeMaskedPairLM(encoder(Case(name), dtype, num_segments=2, **kwargs))
    scramble(model.weights)
    return model


def given(batch=3, length=7, slots=2):
    where = np.random.default_rng(0).integers(0, length, size=(batch, slots))
    segments = (np.arange(length) > 3).astype("int32") * np.ones((batch, 1), "int32")
    row = inputs(random_ids(batch, length, 0), lengths=[length, length - 2, length - 1])
    return {**row, "segment_ids": segments, "mask_positions": where.astype("int32")}


def targets(batch=3, slots=2):
    labels = {"masked_lm": random_ids(batch, slots, seed=3), "pair": np.arange(batch) % 2}
    weights = {"masked_lm": np.ones((batch, slots), "float32"), "pair": np.ones(batch, "float32")}
    weights["masked_lm"][1] = 0
    weights["pair"][2] = 0
    return labels, weights


def arrays(outputs):
    return {name: ops.convert_to_numpy(value) for name, value in outputs.items()}


def test_tokens_have_the_head_of_masked_lm_and_the_pair_a_linear_one_over_the_pooler():
    model, batch = pair_lm(), given()
    found = arrays(model(batch))
    encoded = model.backbone({k: batch[k] for k in ("token_ids", "padding_mask", "segment_ids")})
    wanted = model.head(encoded["sequence_output"], mask_positions=batch["mask_positions"])
    np.testing.assert_allclose(
        found["masked_lm"], ops.convert_to_numpy(wanted), atol=in_float64(1e-12)
    )
    pooled = ops.convert_to_numpy(encoded["pooled_output"])
    kernel, bias = map(ops.convert_to_numpy, model.pair_head.weights)
    np.testing.assert_allclose(found["pair"], pooled @ kernel + bias, atol=in_float64(1e-12))
    assert model.head.token_embedding is model.backbone.token_embedding
    assert len(model.weights) == len(model.backbone.weights) + 5 + 2


def test_its_masked_lm_predicts_the_same_tokens():
    model, batch = pair_lm(num_layers=1), given()
    found = model.masked_lm()
    assert type(found) is TupeMaskedLM
    assert found.backbone is model.backbone
    wanted = ops.convert_to_numpy(model(batch)["masked_lm"])
    np.testing.assert_array_equal(ops.convert_to_numpy(found(batch)), wanted)


def test_bad_input_is_refused_in_a_sentence():
    with pytest.raises(ValueError, match="`num_segments=2`. Received: num_segments=0"):
        TupeMaskedPairLM(encoder(Case("tupe_r"), "float32", num_layers=1))
    model = pair_lm("float32", num_layers=1)
    model.compile()
    labels, weights = targets()
    wrong = {**labels, "pair": labels["pair"] + 1}
    with pytest.raises(ValueError, match=r"`labels` must lie in \[0, 2\).*Received: 2"):
        model.train_on_batch(given(), wrong, weights)
    with pytest.raises(ValueError, match="mask_positions"):
        model({k: v for k, v in given().items() if k != "mask_positions"})


# Text


@pytest.fixture
def preprocessor():
    pytest.importorskip("tensorflow", reason="text needs TensorFlow on every backend")
    return TupeMaskedPairLMPreprocessor(TupeTokenizer(WORDS), sequence_length=12)


def test_text_becomes_masked_rows_of_two_segments_with_their_classes(preprocessor):
    x, y, weights = keras.tree.map_structure(np.asarray, preprocessor((FIRST, SECOND), [0, 1]))
    assert list(x) == ["token_ids", "padding_mask", "segment_ids", "mask_positions"]
    assert y["pair"].tolist() == [0, 1]
    assert weights["pair"].tolist() == [1, 1]
    rows = x["token_ids"].copy()
    for row, positions, labels in zip(rows, x["mask_positions"], y["masked_lm"], strict=True):
        row[positions[labels > 0]] = labels[labels > 0]
    assert rows[0].tolist() == [START, 5, 6, 7, END, 10, 11, END] + [PAD] * 4
    assert x["segment_ids"][0].tolist() == [0] * 5 + [1] * 3 + [0] * 4
    assert weights["masked_lm"].sum() >= 1
    _, y, weights = preprocessor((FIRST, SECOND), [1, 0], [0.5, 2.0])
    assert np.asarray(weights["pair"]).tolist() == [0.5, 2.0]
    _, y, weights = preprocessor(("a b", "c"), y=None)  # one pair, of an unknown class
    assert float(weights["pair"]) == 0
    assert sorted(preprocessor.masked_lm()(FIRST)[0]) == sorted(x)
    with pytest.raises(ValueError, match=r"`y` must have one number for each pair.*shape \(3,\)"):
        preprocessor((FIRST, SECOND), [0, 1, 1])
