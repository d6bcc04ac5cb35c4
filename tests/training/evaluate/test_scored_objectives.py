"""Scores of sentences by what other objectives leave: discriminators, and models of pairs."""

import csv
import math
import types

import blimp_cases as cases
import keras
import numpy as np
import pytest

from keras_tupe import (
    TupeBackbone,
    TupeMaskedPairLM,
    TupeMaskedPairLMPreprocessor,
    TupeTextClassifierPreprocessor,
    TupeTokenDiscriminator,
    TupeTokenizer,
)
from training.evaluate.sentences import OwnTokenLogLikelihood, PseudoLogLikelihood

CLS, SEP, MASK = 2, 3, 4
SENTENCES = [[5, 6, 7], [9], [], [5, 6, 7], [6, 5, 7, 8, 10], [8, 8]]


class LogitOfToken(keras.Model):
    """A discriminator whose logits are known: one for each token, wherever it stands."""

    def __init__(self, logits):
        super().__init__()
        self.table = keras.ops.convert_to_tensor(logits, "float64")
        self.backbone = types.SimpleNamespace(num_segments=0)
        self.built = True

    def call(self, inputs, training=None):
        return keras.ops.take(self.table, inputs["token_ids"])


def test_a_score_is_what_is_computed_by_hand():
    # a token is its own with probability 1 / (1 + exp(logit)): here 1/4, 1/2 and 3/4
    logits = np.full(11, 50.0)  # of the frame, which does not count
    logits[5:8] = [math.log(3), 0.0, -math.log(3)]
    found = OwnTokenLogLikelihood(LogitOfToken(logits), [CLS], [SEP]).scores(
        [[5, 6, 7], [6], [7, 7], []]
    )
    expected = [math.log(3 / 32), math.log(1 / 2), math.log(9 / 16), 0.0]
    np.testing.assert_allclose(found, expected, rtol=1e-14)


def discriminator(num_segments=0, vocabulary_size=11, dtype="float64"):
    backbone = TupeBackbone(
        vocabulary_size, 1, 2, 6, 7, "tupe_r", None, 0.0, 8, num_segments, dtype=dtype
    )
    return scrambled(TupeTokenDiscriminator(backbone))


def pair_model(vocabulary_size=11, dtype="float64"):
    backbone = TupeBackbone(vocabulary_size, 1, 2, 6, 7, "absolute", None, 0.0, 8, 2, dtype=dtype)
    return scrambled(TupeMaskedPairLM(backbone))


def scrambled(model):
    random = np.random.default_rng(7)
    for weight in model.weights:
        weight.assign(random.normal(size=weight.shape))
    return model


def row_of(ids, segments):
    row = np.array([[CLS, *ids, SEP]], "int32")
    inputs = {"token_ids": row, "padding_mask": np.ones_like(row)}
    return {**inputs, "segment_ids": np.zeros_like(row)} if segments else inputs


def own_tokens(model, ids):
    """The equation, for one sentence."""
    logits = keras.ops.convert_to_numpy(model(row_of(ids, model.backbone.num_segments)))
    return -np.log1p(np.exp(logits[0, 1:-1].astype("float64"))).sum()


def masked_pairs(model, ids):
    """The equation, with a plain call for each token."""
    total = 0.0
    for number, target in enumerate(ids):
        inputs = row_of([MASK if n == number else other for n, other in enumerate(ids)], True)
        inputs["mask_positions"] = np.array([[1 + number]], "int32")
        logits = keras.ops.convert_to_numpy(model(inputs)["masked_lm"])[0, 0].astype("float64")
        total += logits[target] - np.log(np.exp(logits).sum())
    return total


@pytest.mark.parametrize("num_segments", [0, pytest.param(2, marks=pytest.mark.slow)])
def test_a_discriminators_scores_equal_the_equation(num_segments):
    model = discriminator(num_segments)
    scorer = OwnTokenLogLikelihood(model, [CLS], [SEP], batch_tokens=5)  # a row at once
    found = scorer.scores(SENTENCES)
    np.testing.assert_allclose(found, [own_tokens(model, ids) for ids in SENTENCES], rtol=1e-12)
    assert found[0] == found[3]


def test_a_model_of_pairs_is_scored_by_its_masked_tokens_in_the_first_segment():
    model = pair_model()
    scorer = PseudoLogLikelihood(model.masked_lm(), MASK, [CLS], [SEP], batch_tokens=20)
    found = scorer.scores(SENTENCES)
    np.testing.assert_allclose(found, [masked_pairs(model, ids) for ids in SENTENCES], rtol=1e-12)


def save(model, folder):
    tokenizer = TupeTokenizer(list(cases.ODDS))
    kind = type(model).preprocessor_cls
    assert kind in (TupeTextClassifierPreprocessor, TupeMaskedPairLMPreprocessor)
    model.preprocessor = kind(
        tokenizer, sequence_length=cases.LONGEST, segments=bool(model.backbone.num_segments)
    )
    model.save_to_preset(str(folder))
    return folder


@pytest.mark.parametrize(
    ("make", "plain", "name"),
    [
        (discriminator, own_tokens, "own tokens"),
        pytest.param(pair_model, masked_pairs, "token", marks=pytest.mark.slow),
    ],
)
def test_the_command_scores_presets_of_other_objectives(make, plain, name, tmp_path):
    model = make(vocabulary_size=len(cases.ODDS), dtype="float32")
    preset = save(model, tmp_path / "preset")
    data, out = cases.write_pairs(tmp_path / "blimp"), tmp_path / "out"
    results, _ = cases.run(preset, data, out, "--paradigms", "agreement")
    assert results["score"] == name
    with open(out / "preset" / "agreement" / "pairs.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    tokenizer = TupeTokenizer(list(cases.ODDS))
    for row in rows:
        for kind in ("good", "bad"):
            ids = tokenizer.op.tokenize([row[kind]]).to_list()[0]
            np.testing.assert_allclose(float(row[f"{kind}_score"]), plain(model, ids), rtol=1e-5)
    half = ("--paradigms", "agreement", "--precision", "mixed_bfloat16")
    results, _ = cases.run(preset, data, tmp_path / "half", *half)
    assert results["precision"] == "mixed_bfloat16"
    if name == "own tokens":
        told = cases.failure(preset, data, tmp_path / "other", "--score", "word")
        assert "a discriminator of replaced tokens judges the sentence as it is" in told
        assert "Received: score='word'" in told
