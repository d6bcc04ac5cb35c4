"""`training.demo`: what it shows of the committed model, and what it refuses."""

import json
import os
import pathlib
import re
import shutil

import commands
import keras
import numpy as np
import pytest
from run_cases import cells, picture

from keras_tupe import TupeBackbone, TupeMaskedLM, TupeMaskedLMPreprocessor, TupeTokenizer
from keras_tupe.export import write_card
from training.demo import settings as demo_settings
from training.demo.sentences import BLANKS, QUESTIONS, SENTENCES, shuffled
from training.demo.show import cosines_of, load, log_probabilities

ROOT = pathlib.Path(__file__).parents[3]
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", *"abcdefgh", "##a", "##b"]


def save(folder, kind=TupeMaskedLM, position="none"):
    """Writes an export that is its preset alone; returns the folder."""
    keras.utils.set_random_seed(1)
    backbone = TupeBackbone(
        len(PIECES), 1, 2, 8, 16, position=position, max_sequence_length=24, initializer_range=0.5
    )
    model = backbone
    if kind is TupeMaskedLM:
        text = TupeMaskedLMPreprocessor(TupeTokenizer(PIECES), sequence_length=12)
        model = TupeMaskedLM(backbone, preprocessor=text)
    model.save_to_preset(str(folder / "preset"))
    TupeTokenizer(PIECES).save_to_preset(str(folder / "preset"))
    write_card(folder, command="of a test")
    return folder


@pytest.fixture(scope="module")
def export(tmp_path_factory):
    """The export of a model without positions."""
    return save(tmp_path_factory.mktemp("export"))


@pytest.fixture(scope="module")
def known(export):
    """The model of that export."""
    return load(export / "preset")


@pytest.mark.parametrize("anew", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_the_committed_model_is_shown_from_any_folder(anew, tmp_path, monkeypatch):
    if anew:
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        ended = commands.run_anew("demo", cwd=tmp_path, env=environment)
    else:
        monkeypatch.chdir(tmp_path)
        ended = commands.run("demo")
    assert ended.code == 0, ended.err
    assert ended.err == ""
    lines = ended.out.splitlines()
    assert 30 <= len(lines) <= 45
    assert max(map(len, lines)) <= 110
    assert [path.name for path in tmp_path.iterdir()] == ["demo.png"]
    picture(tmp_path / "demo.png")
    for part in ("drawn in demo.png", "keras-tupe quickstart", "python -m docs", " s in all"):
        assert part in ended.out
    assert all(blank in ended.out for blank in BLANKS)
    assert all(question in ended.out for question in QUESTIONS)
    means = [float(row[1]) for row in cells(ended.out) if row[0].startswith("mean")]
    assert means[0] > means[1] + 2
    count = re.search(rf"Likelier as written: (\d+) of {len(SENTENCES)}", ended.out)
    assert int(count[1]) >= 24


def test_a_sentence_is_nearest_to_itself_and_cosines_are_of_what_differs():
    vectors = np.random.default_rng(0).normal(size=(4, 9))
    cosines = cosines_of(vectors, vectors)
    assert cosines.argmax(axis=1).tolist() == [0, 1, 2, 3]
    np.testing.assert_allclose(cosines.diagonal(), 1)
    # of two sentences what both share is nothing, so what is left is opposite
    np.testing.assert_allclose(cosines_of(vectors[:1], vectors[:2]), [[1, -1]])


@pytest.mark.parametrize("position", ["none", "tupe_r"])
def test_only_positions_tell_orders_apart(position, known, tmp_path):
    if position != "none":
        known = load(save(tmp_path, position=position) / "preset")
    written, other = log_probabilities(known, ["a b ca d e.", "ca e a d b."])
    assert (abs(written - other) < 1e-5) == (position == "none")
    assert written < 0


def test_a_log_probability_is_per_word(known):
    whole = np.array([[2, 4, 7, 3], [2, 6, 4, 3]])
    inputs = {"token_ids": whole, "padding_mask": np.ones_like(whole)}
    logits = np.array(known({**inputs, "mask_positions": np.array([[1], [2]])}))[:, 0]
    logs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    expected = (logs[0, 6] + logs[1, 7]) / 2
    np.testing.assert_allclose(log_probabilities(known, ["a b"]), [expected], rtol=1e-5)


def test_the_sentences_are_of_one_form():
    assert len(set(SENTENCES)) == 25
    for text in SENTENCES:
        other = shuffled(text)
        assert other != text
        assert sorted(other[:-1].split()) == sorted(text[:-1].split())
        assert other == shuffled(text)
    assert all(text.count("[MASK]") == 1 for text in BLANKS)


def test_a_picture_that_cannot_be_written_is_refused(tmp_path):
    for out in (tmp_path, tmp_path / "demo.txt"):
        assert "--out must be a .png file" in commands.refusal("demo", "--out", out, code=2)
    (tmp_path / "file").touch()
    told = commands.refusal("demo", "--out", tmp_path / "file" / "demo.png", code=2)
    assert "--out must be a folder" in told


def test_a_model_that_is_not_there_or_damaged_is_told_with_the_way_to_get_it(
    export, tmp_path, monkeypatch
):
    monkeypatch.setattr(demo_settings, "COMMITTED", tmp_path / "novels")
    told = commands.refusal("demo", code=2)
    assert len(told.splitlines()) == 1
    assert "run this in a clone, or name that folder as --model" in told
    assert f"Received: {str(tmp_path / 'novels')!r}, without preset/" in told

    shutil.copytree(export, tmp_path / "novels")
    weights = tmp_path / "novels" / "preset" / "model.weights.h5"
    content = bytearray(weights.read_bytes())
    content[len(content) // 2] ^= 1
    weights.write_bytes(content)
    told = commands.refusal("demo", code=2)
    assert len(told.splitlines()) == 1
    assert "The model is damaged: preset/model.weights.h5 has changed since." in told
    assert "git checkout -- saved_models/novels" in told
    told = commands.refusal("demo", "--model", tmp_path / "novels", code=2)
    assert "Export the model again" in told
    weights.unlink()
    assert "The model is damaged" in commands.refusal("demo", code=2)
    shutil.copy(export / "preset" / "model.weights.h5", weights)
    for damage in ("{", "[]", json.dumps({"sha256": [1]}), ""):
        (tmp_path / "novels" / "card.json").write_text(damage)
        told = commands.refusal("demo", code=2)
        assert "The model is damaged" in told
        assert len(told.splitlines()) == 1


def test_an_encoder_without_words_is_refused(tmp_path):
    folder = save(tmp_path, kind=TupeBackbone)
    told = commands.refusal("demo", "--model", folder, code=1)
    assert "must be a masked language model" in told
