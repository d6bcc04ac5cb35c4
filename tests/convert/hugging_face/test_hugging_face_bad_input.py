import json

import numpy as np
import pytest
from bert_cases import PIECES, released_weights, tiny_model, write_hf

from keras_tupe.convert import from_hf, to_hf
from keras_tupe.models import TupeBackbone, TupeMaskedLM

WORDS = "bert.embeddings.word_embeddings.weight"


def refused(folder, error=ValueError):
    """Returns what is said about a folder that cannot be converted."""
    with pytest.raises(error) as caught:
        from_hf(folder)
    message = str(caught.value)
    assert "Received: " in message
    return message


@pytest.mark.parametrize("name", ["config.json", "vocab.txt", "model.safetensors"])
def test_a_link_to_a_file_elsewhere_is_refused_and_not_quoted(name, tmp_path):
    folder = write_hf(tmp_path / "bert")
    (tmp_path / "secret").write_text("[PAD]\nthe secret\nthe secret\n")
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(tmp_path / "secret")
    message = refused(folder)
    assert "a link to elsewhere" in message
    assert "the secret" not in message


def test_weights_that_are_not_numbers_are_refused(tmp_path):
    weights = released_weights(**{WORDS: np.full((11, 6), np.nan, "f")})
    assert "NaN or infinite" in refused(write_hf(tmp_path / "bert", weights=weights))


def test_a_folder_without_its_files_is_named(tmp_path):
    assert "config.json" in refused(tmp_path / "nowhere", FileNotFoundError)
    folder = write_hf(tmp_path / "bert")
    (folder / "model.safetensors").unlink()
    message = refused(folder, FileNotFoundError)
    assert "model.safetensors or pytorch_model.bin" in message
    for content in ("{", "[1]"):
        (folder / "config.json").write_text(content)
        assert "must hold a JSON object" in refused(folder)


@pytest.mark.parametrize("entry", ["vocab_size", "num_hidden_layers", "max_position_embeddings"])
def test_a_configuration_far_larger_than_the_weights_makes_no_model(entry, tmp_path):
    message = refused(write_hf(tmp_path / "bert", {entry: 10**12}))
    assert "by the configuration there are at least" in message


@pytest.mark.parametrize("size", [0, 7, 300, -1])
def test_a_damaged_file_of_weights_is_named(size, tmp_path):
    folder = write_hf(tmp_path / "bert")
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:size])
    message = refused(folder)
    assert "whole safetensors file" in message
    assert "model.safetensors" in message


@pytest.mark.parametrize(
    ("weight_map", "error", "expected"),
    [
        ({WORDS: "../bert/model.safetensors"}, ValueError, "names of files beside it"),
        ({WORDS: 3}, ValueError, "names of files beside it"),
        (None, ValueError, "must have a `weight_map`"),
        ({WORDS: "part-2.safetensors"}, FileNotFoundError, "part-2.safetensors"),
        ({"more": "part-1.safetensors"}, ValueError, "more is not in part-1.safetensors"),
        ({}, ValueError, "in the files 0"),
    ],
)
def test_an_index_that_lies_is_named(weight_map, error, expected, tmp_path):
    folder = write_hf(tmp_path / "bert")
    (folder / "model.safetensors").rename(folder / "part-1.safetensors")
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": weight_map}))
    assert expected in refused(folder, error)


def test_a_vocabulary_that_cannot_be_read_is_named(tmp_path):
    folder = write_hf(tmp_path / "bert", pieces=PIECES)
    (folder / "vocab.txt").write_bytes(b"caf\xe9\n" * 11)
    assert "which is not UTF-8" in refused(folder)


def test_a_tokenizer_that_is_no_wordpiece_or_too_small_is_refused(tmp_path):
    pytest.importorskip("tensorflow_text")
    from tiny_vocabularies import sentencepiece_model

    from keras_tupe.models import TupeMaskedLMPreprocessor, TupeTokenizer

    backbone = TupeBackbone(200, 1, 3, 15, 8, "absolute", max_sequence_length=9)
    for given, expected in (
        ({"sentencepiece": sentencepiece_model()}, "a sentencepiece tokenizer"),
        ({"vocabulary": PIECES}, "a tokenizer of 11 pieces for 200 token vectors"),
    ):
        preprocessor = TupeMaskedLMPreprocessor(TupeTokenizer(**given), sequence_length=9)
        with pytest.raises(ValueError, match=expected):
            to_hf(TupeMaskedLM(backbone, preprocessor), tmp_path / "bert", "bert")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["file", "folder", "link"])
def test_an_output_folder_that_exists_is_left_alone(kind, tmp_path):
    out = tmp_path / "bert"
    {
        "file": lambda: out.write_text("mine"),
        "folder": out.mkdir,
        "link": lambda: out.symlink_to(tmp_path / "nowhere"),
    }[kind]()
    with pytest.raises(ValueError, match="must not exist yet.*Received: .*bert"):
        to_hf(tiny_model(), out, "bert")
    assert list(tmp_path.iterdir()) == [out]
    assert kind != "folder" or list(out.iterdir()) == []


def test_a_write_that_fails_leaves_nothing_behind(tmp_path):
    model = tiny_model()
    model.backbone.initializer_range = np.float32(0.02)  # cannot be written as JSON
    with pytest.raises(TypeError, match="JSON"):
        to_hf(model, tmp_path / "new" / "bert", "bert")
    assert list(tmp_path.iterdir()) == []
