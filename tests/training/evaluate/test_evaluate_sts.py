"""`evaluate sts`: correlations with people, beside mean word vectors."""

import csv
import json

import commands
import numpy as np
import pytest
import scipy.stats
from glue_cases import LIMIT, SPECIAL, WORDS, save_preset, write_tasks
from run_cases import picture

from keras_tupe import TupeMaskedLM, TupeTextClassifierPreprocessor, TupeTextEmbedder
from training.evaluate.tasks.sts import MODEL, cosines_of, scores
from training.evaluate.tasks.sts import WORDS as WORD_VECTORS

FEW = ("--no-check-counts", "--resamples", 30)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_tasks(tmp_path_factory.mktemp("glue"), "stsb", dev=30, train=6)


@pytest.fixture(scope="module")
def preset(tmp_path_factory):
    return save_preset(tmp_path_factory.mktemp("preset"))


def read_pairs(out):
    (path,) = out.glob("*/pairs.csv")
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    numbers = {name: np.array([float(row[name]) for row in rows]) for name in list(rows[0])[:3]}
    return numbers, [(row["first"], row["second"]) for row in rows]


def by_hand(table, texts):
    """The mean of word vectors of two texts whose words are pieces, and their cosine."""
    means = [sum(table[WORDS.index(word)] for word in text.split()) for text in texts]
    return means[0] @ means[1] / np.sqrt((means[0] @ means[0]) * (means[1] @ means[1]))


def test_a_masked_language_model_is_measured_beside_its_word_vectors(data, preset, tmp_path):
    out = tmp_path / "sts"
    told = commands.done("evaluate sts", preset, "--data", data, "--out", out, *FEW)
    results = json.loads((out / "study.json").read_text())
    numbers, texts = read_pairs(out)
    assert results["pairs"] == len(texts) == 30
    assert (results["pooling"], results["length"], results["cut"]) == ("mean", LIMIT, 0)
    for name, column in ((MODEL, "cosine"), (WORD_VECTORS, "cosine_of_word_vectors")):
        wanted = scipy.stats.spearmanr(numbers["score"], numbers[column]).statistic
        found = results["correlations"][name]
        assert found["spearman"] == pytest.approx(wanted, abs=1e-9)
        assert found["low"] < found["spearman"] < found["high"]
        assert f"{100 * found['spearman']:.1f}" in told
    model = TupeMaskedLM.from_preset(str(preset))
    embedder = TupeTextEmbedder(
        model.backbone, TupeTextClassifierPreprocessor(model.preprocessor.tokenizer, LIMIT)
    )
    vectors = [embedder.embed(list(part)) for part in zip(*texts, strict=True)]
    np.testing.assert_allclose(numbers["cosine"], (vectors[0] * vectors[1]).sum(1), atol=1e-5)
    table = np.asarray(model.backbone.token_embedding.embeddings)
    assert len(SPECIAL) < len(table)
    words = [by_hand(table, pair) for pair in texts]
    np.testing.assert_allclose(numbers["cosine_of_word_vectors"], words, atol=1e-5)
    picture(out / "sts.png")


@pytest.mark.slow
def test_an_embedder_keeps_its_pooling_and_cut_texts_are_counted(data, preset, tmp_path):
    model = TupeMaskedLM.from_preset(str(preset))
    preprocessor = TupeTextClassifierPreprocessor(model.preprocessor.tokenizer, 5)
    embedder = TupeTextEmbedder(model.backbone, preprocessor, pooling="max")
    embedder.save_to_preset(str(tmp_path / "embedder"))
    words = [tmp_path / "embedder", "--data", data, "--out", tmp_path / "sts", *FEW]
    told = commands.done("evaluate sts", *words)
    first = json.loads((tmp_path / "sts" / "study.json").read_text())
    assert (first["pooling"], first["length"]) == ("max", 5)
    _, texts = read_pairs(tmp_path / "sts")
    assert first["cut"] == sum(len(text.split()) > 3 for pair in texts for text in pair) > 0
    assert f"{first['cut']} texts were cut at 5 tokens" in told
    told = commands.refusal("evaluate sts", *words, "--pooling", "cls")
    assert "pooling: None -> 'cls'" in told
    words[-1 - len(FEW)] = tmp_path / "cls"
    commands.done("evaluate sts", *words, "--pooling", "cls", "--length", 24)
    again = json.loads((tmp_path / "cls" / "study.json").read_text())
    assert (again["pooling"], again["cut"]) == ("cls", 0)
    assert again["correlations"][MODEL] != first["correlations"][MODEL]


def test_scores_are_of_the_same_pairs_and_seeds():
    gold = np.arange(40) / 8
    noise = np.random.default_rng(0).normal(size=40)
    cosines = {MODEL: gold + noise, WORD_VECTORS: gold - 3 * noise}
    found = scores(gold, cosines, 100, 7)
    assert found == scores(gold, cosines, 100, 7)
    both = [found["correlations"][name]["spearman"] for name in cosines]
    assert found["difference"]["spearman"] == pytest.approx(both[0] - both[1])
    assert found["difference"]["low"] > 0
    same = scores(gold, {MODEL: noise, WORD_VECTORS: noise}, 10, 0)["difference"]
    assert set(same.values()) == {0.0}, "pairs are drawn together"


def test_cosines_do_not_depend_on_lengths_and_zero_has_none():
    first, second = np.array([[3.0, 0], [1, 1], [0, 0]]), np.array([[5.0, 0], [-2, 2], [1, 0]])
    np.testing.assert_allclose(cosines_of(first, second), [1, 0, 0], atol=1e-15)


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (("nowhere", "--data", "nothing"), ("PRESET must be the", "--data must be a folder")),
        ((), ("PRESET must be given", "--data must be given")),
        (("--pooling", "weightedmean", "--split", "dev"), ("--pooling must be", "--split must be")),
        (("--length", 2, "--resamples", 0), ("--length must be an integer >= 3", "--resamples")),
    ],
)
def test_mistakes_are_named_before_any_work(words, parts, tmp_path):
    ended = commands.run("evaluate sts", *words, "--out", tmp_path / "out")
    assert ended.code == 2
    for part in parts:
        assert part in ended.err


def test_what_cannot_be_measured_is_refused(data, preset, tmp_path):
    words = ("--out", tmp_path / "out")
    told = commands.refusal("evaluate sts", preset, "--data", data, *words)
    assert "give --no-check-counts" in told
    told = commands.refusal("evaluate sts", preset, "--data", preset, *words, *FEW)
    assert "--data must hold the official files of STS-B" in told
    bare = save_preset(tmp_path / "bare", kind="encoder")
    told = commands.refusal("evaluate sts", bare, "--data", data, *words, *FEW)
    assert "must have a tokenizer" in told
    assert not (tmp_path / "out").exists()
