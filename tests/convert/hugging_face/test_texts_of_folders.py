"""Texts of GPT-2, BART and Longformer: read and written as in transformers."""

import functools
import importlib.util
import json

import keras
import numpy as np
import pytest
from golden_cases import GOLDEN
from hf_cases import check_equal, golden_copy, values

from keras_tupe import models
from keras_tupe.convert import from_hf, to_hf

SIZES = {"position": "absolute", "num_decoder_layers": 1, "max_sequence_length": 9}
NOT_ON_JAX = pytest.mark.skipif(
    keras.backend.backend() == "jax",
    reason="KerasHub's samplers mix integers of 32 and 64 bits, which tests have on JAX",
)


@functools.cache
def golden(name):
    return dict(np.load(GOLDEN / f"{name}.npz"))


# transformers drops an end that is not among the `num_beams` likeliest tokens of its step, which
# ours keeps; of these searches none is.
@NOT_ON_JAX
@pytest.mark.slow  # by default, the text that it writes
@pytest.mark.parametrize("name", ["small", "deep"])
def test_it_writes_the_tokens_that_it_writes_in_transformers(name):
    numbers = golden(f"bart/{name}")
    shape = numbers["greedy"].shape
    ids, mask = np.zeros(shape, "int32"), np.zeros(shape, "int32")
    ids[:, 0], mask[:, :2] = 2, 1  # targets begin with `</s><s>`
    inputs = {"encoder_token_ids": "sources", "encoder_padding_mask": "source_mask"}
    inputs = {name: numbers[key].astype("int32") for name, key in inputs.items()}
    inputs |= {"decoder_token_ids": ids, "decoder_padding_mask": mask}
    model, _ = from_hf(GOLDEN / "bart" / name)
    samplers = {"greedy": "greedy", "beams_mean": models.BeamSearch(4, 1)}
    if name == "deep":
        samplers |= {"beams_sum": models.BeamSearch(4, 0), "beams_root": models.BeamSearch(4, 0.6)}
    for kind, sampler in samplers.items():
        model.compile(sampler=sampler)
        found = model.generate(inputs, stop_token_ids=[2])["decoder_token_ids"]
        for ours, wanted in zip(found, numbers[kind], strict=True):
            end = [*wanted[2:].tolist(), 2].index(2) + 3
            np.testing.assert_array_equal(np.asarray(ours)[:end], wanted[:end])
    assert len({tuple(row) for row in numbers["greedy"].tolist()}) > 2, "sources matter"


def with_text(folder, **changes):
    """Copies the golden folder whose vocabulary is in another one, with that."""
    return golden_copy("bart/text", folder, with_text=True, **changes)


@NOT_ON_JAX
def test_it_writes_the_text_that_it_writes_in_transformers(tensorflow, tmp_path):
    numbers = golden("bart/text")
    model, report = from_hf(with_text(tmp_path / "bart"))
    assert any("special token" in note for note in report.notes)
    texts = numbers["texts"].tolist()
    ids = model.preprocessor.generate_preprocess(texts)["encoder_token_ids"]
    expected = numbers["text_ids"]
    np.testing.assert_array_equal(np.asarray(ids)[:, : expected.shape[1]], expected)
    model.compile(sampler="greedy")
    written = model.generate(texts, max_length=20)
    assert written == numbers["written"].tolist()
    model.save_to_preset(str(tmp_path / "preset"))
    again = models.TupeSeq2SeqLM.from_preset(str(tmp_path / "preset"))
    assert again.preprocessor.decoder_starts_with_end
    again.compile(sampler="greedy")
    assert again.generate(texts, max_length=20) == written


@pytest.mark.parametrize("starts_with_end", [True, False])
def test_a_tokenizer_comes_back_too(starts_with_end, tensorflow, tmp_path):
    start = {"decoder_start_token_id": 2 if starts_with_end else 0}
    model, _ = from_hf(with_text(tmp_path / "bart", config=start))
    assert model.preprocessor.decoder_starts_with_end == starts_with_end
    to_hf(model, tmp_path / "again")
    config = json.loads((tmp_path / "again" / "config.json").read_text())
    assert config["decoder_start_token_id"] == start["decoder_start_token_id"]
    assert config["forced_bos_token_id"] == (0 if starts_with_end else None)
    again, report = from_hf(tmp_path / "again")
    assert not any("ids only" in note for note in report.notes)
    assert again.preprocessor.get_config().keys() == model.preprocessor.get_config().keys()
    assert again.preprocessor.decoder_starts_with_end == starts_with_end
    texts = ["It's \u65e5\u672c\n\n", "a  b"]
    assert again.preprocessor.tokenizer(texts) == model.preprocessor.tokenizer(texts)


def test_a_vocabulary_may_have_a_mask_more(tensorflow, tmp_path):
    """As that of the BARTs which were fine-tuned on news: 50,265 pieces for 50,264 vectors."""

    def without_last(weights):
        cut = {"model.shared.weight": 0, "final_logits_bias": 1}
        return {
            name: np.ascontiguousarray(np.delete(value, 480, cut[name])) if name in cut else value
            for name, value in weights.items()
        }

    folder = with_text(tmp_path / "bart", config={"vocab_size": 480}, weights=without_last)
    model, _ = from_hf(folder)
    tokenizer = model.preprocessor.tokenizer
    assert (tokenizer.vocabulary_size(), model.backbone.vocabulary_size) == (481, 480)
    rows = model.preprocessor.generate_preprocess(["the <mask>"])
    assert np.asarray(rows["encoder_token_ids"]).max() < 480
    to_hf(model, tmp_path / "again")
    again, _ = from_hf(tmp_path / "again")
    check_equal(values(again), values(model))
    assert again.preprocessor.tokenizer.vocabulary_size() == 481
    with pytest.raises(ValueError, match="which is 479"):
        from_hf(with_text(tmp_path / "other", config={"vocab_size": 479}))


def test_gpt_2_writes_the_text_that_it_writes_in_transformers(tensorflow, tmp_path):
    model, report = from_hf(golden_copy("gpt2", tmp_path / "gpt2", with_text=True))
    assert any("special token" in note for note in report.notes)
    model.compile(sampler="greedy")
    texts = golden("gpt2")["texts"].tolist()
    # it pads with the token that ends a text, which must not end it here
    assert model.preprocessor.tokenizer.pad_token_id == model.preprocessor.tokenizer.end_token_id
    for options in ({}, {"stop_token_ids": None}):
        written = model.generate(texts, max_length=30, **options)
        assert written == golden("gpt2")["written"].tolist()
    end = model.preprocessor.tokenizer("\t")[0]
    cut = model.generate(texts, max_length=30, stop_token_ids=[int(end)])
    assert [text.count("\t") for text in cut] == [1, 1, 1]
    model.save_to_preset(str(tmp_path / "preset"))
    again = models.TupeCausalLM.from_preset(str(tmp_path / "preset"))
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
    tokenizer = models.TupeTokenizer.from_preset(str(tmp_path / "preset"))
    assert tokenizer.detokenize(tokenizer(["It's  日本"])) == ["It's  日本"]
    to_hf(model, tmp_path / "again")
    assert (tmp_path / "again" / "merges.txt").read_bytes() == (folder / "merges.txt").read_bytes()


def test_the_vocabulary_of_a_longformer_is_robertas_and_others_are_left_out(tensorflow, tmp_path):
    folder = golden_copy("longformer", tmp_path / "long", with_text=True)
    settings = {"tokenizer_class": "LongformerTokenizer", "mask_token": "<mask>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    ids = json.loads((GOLDEN / "byte_pairs" / "ids.json").read_text("utf-8"))
    assert from_hf(folder)[0].preprocessor.tokenizer(ids["texts"]) == ids["roberta"]
    settings["tokenizer_class"] = "GPT2Tokenizer"
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    assert from_hf(folder)[0].preprocessor is None
    folder = golden_copy("gpt2", tmp_path / "gpt2", with_text=True)
    content = (folder / "vocab.json").read_text("utf-8").replace("<|endoftext|>", "<end>")
    (folder / "vocab.json").write_text(content, encoding="utf-8")
    model, report = from_hf(folder)
    assert model.preprocessor is None
    assert any("ours cannot use vocab.json" in note for note in report.notes)
