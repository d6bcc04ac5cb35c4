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


def pair_lm(dtype="float64"):
    model = TupeMaskedPairLM(encoder(Case("tupe_r"), dtype, num_layers=1, num_segments=2))
    scramble(model.weights)
    return model


def given(batch=3, length=7):
    row = inputs(random_ids(batch, length, 0), lengths=[length, length - 2, length - 1])
    row["segment_ids"] = (np.arange(length) > 3).astype("int32") * np.ones((batch, 1), "int32")
    return {**row, "mask_positions": random_ids(batch, 2).astype("int32") % length}


def test_tokens_have_the_head_of_masked_lm_and_the_pair_a_linear_one_over_the_pooler():
    model, batch = pair_lm(), given()
    found = {name: ops.convert_to_numpy(value) for name, value in model(batch).items()}
    encoded = model.backbone({k: batch[k] for k in ("token_ids", "padding_mask", "segment_ids")})
    wanted = model.head(encoded["sequence_output"], mask_positions=batch["mask_positions"])
    np.testing.assert_allclose(found["masked_lm"], wanted, atol=in_float64(1e-12))
    pooled = ops.convert_to_numpy(encoded["pooled_output"])
    kernel, bias = map(ops.convert_to_numpy, model.pair_head.weights)
    np.testing.assert_allclose(found["pair"], pooled @ kernel + bias, atol=in_float64(1e-12))
    assert len(model.weights) == len(model.backbone.weights) + 5 + 2
    alone = model.masked_lm()  # predicts the same tokens
    assert type(alone) is TupeMaskedLM
    assert alone.backbone is model.backbone
    assert alone.head.token_embedding is model.backbone.token_embedding
    np.testing.assert_array_equal(ops.convert_to_numpy(alone(batch)), found["masked_lm"])


def test_bad_input_is_refused_in_a_sentence():
    with pytest.raises(ValueError, match="`num_segments=2`. Received: num_segments=0"):
        TupeMaskedPairLM(encoder(Case("tupe_r"), "float32", num_layers=1))
    model = pair_lm("float32")
    wrong = {"masked_lm": random_ids(3, 2, seed=3), "pair": np.array([1, 2, 1])}
    with pytest.raises(ValueError, match=r"`labels` must lie in \[0, 2\).*Received: 2"):
        model.train_on_batch(given(), wrong)
    with pytest.raises(ValueError, match="mask_positions"):
        model({k: v for k, v in given().items() if k != "mask_positions"})


def test_text_becomes_masked_rows_of_two_segments_with_their_classes(tensorflow):
    preprocessor = TupeMaskedPairLMPreprocessor(TupeTokenizer(WORDS), sequence_length=12)
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
