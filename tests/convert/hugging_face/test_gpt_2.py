"""GPT-2: what it writes in transformers, and its configuration."""

import importlib.util

import numpy as np
import pytest
from golden_cases import GOLDEN
from hf_cases import golden_copy

from keras_tupe.convert import from_hf, to_hf
from keras_tupe.models import (
    TupeCausalLM,
    TupeTokenizer,
)

NUMBERS = dict(np.load(GOLDEN / "gpt2.npz"))


def test_it_writes_the_text_that_it_writes_in_transformers(tensorflow, tmp_path):
    model, report = from_hf(golden_copy("gpt2", tmp_path / "gpt2", with_text=True))
    assert any("special token" in note for note in report.notes)
    model.compile(sampler="greedy")
    texts = NUMBERS["texts"].tolist()
    # it pads with the token that ends a text, which must not end it here
    assert model.preprocessor.tokenizer.pad_token_id == model.preprocessor.tokenizer.end_token_id
    for options in ({}, {"stop_token_ids": None}):
        written = model.generate(texts, max_length=30, **options)
        assert written == NUMBERS["written"].tolist()
    end = model.preprocessor.tokenizer("\t")[0]
    cut = model.generate(texts, max_length=30, stop_token_ids=[int(end)])
    assert [text.count("\t") for text in cut] == [1, 1, 1]
    model.save_to_preset(str(tmp_path / "preset"))
    again = TupeCausalLM.from_preset(str(tmp_path / "preset"))
    again.compile(sampler="greedy")
    assert again.generate(texts[:1], max_length=30) == written[:1]


def test_without_tensorflow_the_vocabulary_is_saved_with_the_model(tensorflow, tmp_path):
    folder = golden_copy("gpt2", tmp_path / "gpt2", with_text=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(importlib.util, "find_spec", lambda name: None)
        model, report = from_hf(folder)
    assert any("not installed here" in note for note in report.notes)
    assert not model.preprocessor.tokenizer.has_vocabulary
    model.save_to_preset(str(tmp_path / "preset"))
    tokenizer = TupeTokenizer.from_preset(str(tmp_path / "preset"))
    assert tokenizer.detokenize(tokenizer(["It's  日本"])) == ["It's  日本"]
    to_hf(model, tmp_path / "again")
    assert (tmp_path / "again" / "merges.txt").read_bytes() == (folder / "merges.txt").read_bytes()


def test_the_inner_width_is_four_times_the_outer_unless_given(tmp_path):
    folder = golden_copy("gpt2", tmp_path / "gpt2", {"n_inner": None})
    with pytest.raises(ValueError, match=r"c_fc.weight: shape \(12, 20\), expected \(12, 48\)"):
        from_hf(folder)


def test_rates_that_differ_are_noted_and_upcasting_is_none_of_ours(tmp_path):
    changes = {"attn_pdrop": 0.2, "reorder_and_upcast_attn": True, "what": 1}
    _, report = from_hf(golden_copy("gpt2", tmp_path / "gpt2", changes))
    notes = " ".join(report.notes)
    assert "dropout is 0.1 everywhere, one rate; attn_pdrop=0.2" in notes
    assert "not looked at: what" in notes


def test_a_vocabulary_of_another_frame_is_left_out(tensorflow, tmp_path):
    folder = golden_copy("gpt2", tmp_path / "gpt2", with_text=True)
    content = (folder / "vocab.json").read_text("utf-8").replace("<|endoftext|>", "<end>")
    (folder / "vocab.json").write_text(content, encoding="utf-8")
    model, report = from_hf(folder)
    assert model.preprocessor is None
    assert any("ours cannot use vocab.json" in note for note in report.notes)
