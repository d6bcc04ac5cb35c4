"""GPT-2: what it computes and writes in transformers, both ways, and what it may not be."""

import importlib.util

import keras
import numpy as np
import pytest
from golden_cases import DTYPES, GOLDEN, assert_close, skip_float64_on_jax
from hf_cases import check_equal, golden_copy, hidden_states, inputs_of, values

from keras_tupe.convert import from_hf, to_hf
from keras_tupe.models import (
    TupeCausalLM,
    TupeTokenizer,
)

NUMBERS = dict(np.load(GOLDEN / "gpt2.npz"))
POOLER = {"pooled_dense/kernel", "pooled_dense/bias"}


@pytest.mark.parametrize(("dtype", "tolerance"), DTYPES)
def test_a_released_folder_computes_what_it_does_in_transformers(dtype, tolerance):
    skip_float64_on_jax(dtype)
    model, report = from_hf(GOLDEN / "gpt2", dtype=dtype)
    assert isinstance(model, TupeCausalLM)
    inputs, real = inputs_of(NUMBERS)
    assert not real.all(), "padding is part of the comparison"
    found = hidden_states(model, inputs)
    for ours, theirs in zip(found, NUMBERS["hidden_states"], strict=True):
        assert_close(ours[real], theirs[real], tolerance)
    logits = keras.ops.convert_to_numpy(model(inputs))[0]
    assert_close(logits[real[0]], NUMBERS["logits"][real[0]], tolerance)
    assert set(report.new) == POOLER
    assert len(report.kept) + len(report.new) == len(model.weights)
    assert report.dropped == {}


@pytest.mark.skipif(
    keras.backend.backend() == "jax",
    reason="KerasHub's samplers mix integers of 32 and 64 bits, which tests have on JAX",
)
@pytest.mark.parametrize("dtype", ["float32", pytest.param("float64", marks=pytest.mark.slow)])
def test_it_writes_the_tokens_that_it_writes_in_transformers(dtype):
    model, _ = from_hf(GOLDEN / "gpt2", dtype=dtype)
    prompt, expected = NUMBERS["prompt"], NUMBERS["greedy"]
    ids = np.zeros_like(expected, "int32")
    ids[:, : prompt.shape[1]] = prompt
    mask = np.zeros_like(ids)
    mask[:, : prompt.shape[1]] = 1
    model.compile(sampler="greedy")
    found = model.generate({"token_ids": ids, "padding_mask": mask}, stop_token_ids=None)
    np.testing.assert_array_equal(keras.ops.convert_to_numpy(found["token_ids"]), expected)


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


def with_old_names(weights):
    """What OpenAI's weights are like: no prefix, a mask in each layer, a head that is tied."""
    found = {name.removeprefix("transformer."): value for name, value in weights.items()}
    found["h.0.attn.bias"] = np.tril(np.ones((1, 1, 40, 40), "f"))
    found["h.0.attn.masked_bias"] = np.array(-1e4, "f")
    found["lm_head.weight"] = found["wte.weight"].copy()
    found["score.weight"] = np.ones((2, 12), "f")
    return found


def test_all_spellings_of_a_checkpoint_give_the_same_model(tmp_path):
    plain, _ = from_hf(GOLDEN / "gpt2")
    found, report = from_hf(golden_copy("gpt2", tmp_path / "old", weights=with_old_names))
    assert set(report.dropped) == {
        *("h.0.attn.bias", "h.0.attn.masked_bias", "lm_head.weight", "score.weight"),
    }
    expected = values(plain)
    check_equal(
        {path: value for path, value in values(found).items() if path not in POOLER},
        {path: value for path, value in expected.items() if path not in POOLER},
    )


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
