"""Longformer: what it computes in transformers, both ways, and what it may not be."""

import json

import keras
import numpy as np
import pytest
from bert_cases import scrambled
from golden_cases import DTYPES, GOLDEN, assert_close, skip_float64_on_jax
from hf_cases import golden_copy, inputs_of

from keras_tupe.convert import from_hf, to_hf
from keras_tupe.models import TupeBackbone, TupeMaskedLM

NUMBERS = dict(np.load(GOLDEN / "longformer.npz"))
GLOBALS = {0: "local", 1: "global_1", 3: "global_3"}
LENGTHS = [5, 17, 24, 40]  # the window is 6 tokens
WINDOW = {"position": "absolute", "attention_pattern": "sliding_window", "max_sequence_length": 9}
POOLER = {"pooled_dense/kernel", "pooled_dense/bias"}
SEGMENTS = "longformer.embeddings.token_type_embeddings.weight"


@pytest.mark.parametrize("num_global", GLOBALS)
@pytest.mark.parametrize(("dtype", "tolerance"), DTYPES)
def test_a_released_folder_computes_what_it_does_in_transformers(num_global, dtype, tolerance):
    """There with a softmax in float64, which is the only thing that was changed."""
    skip_float64_on_jax(dtype)
    model, report = from_hf(GOLDEN / "longformer", dtype=dtype, num_global=num_global)
    options = model.backbone.pattern_options
    assert (options["window"], options["separate_global"]) == (3, num_global > 0)
    assert model.backbone.max_sequence_length == 40
    for length in LENGTHS:
        inputs, real = inputs_of(NUMBERS, f"_{length}")
        found = model.backbone(inputs)["sequence_output"]
        expected = NUMBERS[f"hidden_states_{GLOBALS[num_global]}_{length}"]
        assert_close(keras.ops.convert_to_numpy(found)[real], expected[real], tolerance)
    assert set(report.new) == POOLER
    assert len(report.kept) + len(report.new) == len(model.weights)
    of_globals = {name for name in report.dropped if "_global." in name}
    assert len(of_globals) == (0 if num_global else 12)
    assert set(report.dropped) - of_globals == {SEGMENTS}


def test_logits_and_states_with_their_softmax_in_float32():
    skip_float64_on_jax("float64")
    model, _ = from_hf(GOLDEN / "longformer", dtype="float64")
    inputs, real = inputs_of(NUMBERS, "_17")
    assert not real.all(), "padding is part of the comparison"
    states = keras.ops.convert_to_numpy(model.backbone(inputs)["sequence_output"])
    assert_close(states[real], NUMBERS["float32_softmax_global_1_17"][real], 2e-6)
    places = np.tile(np.arange(17, dtype="int32"), (2, 1))
    logits = keras.ops.convert_to_numpy(model({**inputs, "mask_positions": places}))
    assert_close(logits[1], NUMBERS["logits_global_1_17"], 1e-10)


def test_global_tokens_with_the_same_projections_get_copies(tmp_path):
    options = {"window": 2, "num_global": 1}
    backbone = TupeBackbone(13, 1, 3, 15, 8, pattern_options=options, **WINDOW)
    scrambled(backbone)
    to_hf(backbone, tmp_path / "long", "longformer")
    again, _ = from_hf(tmp_path / "long")
    assert again.backbone.pattern_options["separate_global"]
    inputs = {"token_ids": np.arange(9)[None] % 7, "padding_mask": np.ones((1, 9), "int32")}
    found = [
        keras.ops.convert_to_numpy(each(inputs)["sequence_output"])
        for each in (backbone, again.backbone)
    ]
    assert_close(found[1], found[0], 1e-6)


def test_one_window_may_be_written_as_a_number(tmp_path):
    model, _ = from_hf(golden_copy("longformer", tmp_path / "long", {"attention_window": 8}))
    assert model.backbone.pattern_options["window"] == 4


def test_its_vocabulary_is_robertas(tensorflow, tmp_path):
    folder = golden_copy("longformer", tmp_path / "long", with_text=True)
    settings = {"tokenizer_class": "LongformerTokenizer", "mask_token": "<mask>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    model, report = from_hf(folder)
    assert not any("ids only" in note for note in report.notes)
    ids = json.loads((GOLDEN / "byte_pairs" / "ids.json").read_text("utf-8"))
    assert model.preprocessor.tokenizer(ids["texts"]) == ids["roberta"]
    to_hf(model, tmp_path / "again")
    written = json.loads((tmp_path / "again" / "tokenizer_config.json").read_text())
    assert written["tokenizer_class"] == "LongformerTokenizer"
    assert from_hf(tmp_path / "again")[0].preprocessor.tokenizer("a <b") is not None
    model.save_to_preset(str(tmp_path / "preset"))
    again = TupeMaskedLM.from_preset(str(tmp_path / "preset"))
    x, _, _ = again.preprocessor(["the cat sat"])
    assert np.isfinite(keras.ops.convert_to_numpy(again(x))).all()
    settings["tokenizer_class"] = "GPT2Tokenizer"
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    assert from_hf(folder)[0].preprocessor is None
