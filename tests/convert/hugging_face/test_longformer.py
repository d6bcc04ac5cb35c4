"""Longformer: global tokens, windows and texts."""

import json

import keras
import numpy as np
from bert_cases import scrambled
from golden_cases import GOLDEN, assert_close
from hf_cases import golden_copy

from keras_tupe.convert import from_hf, to_hf
from keras_tupe.models import TupeBackbone, TupeMaskedLM

WINDOW = {"position": "absolute", "attention_pattern": "sliding_window", "max_sequence_length": 9}


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
