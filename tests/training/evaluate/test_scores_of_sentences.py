"""Scores of sentences against their equations, written a second time with a call for each token."""

import csv
import functools
import math
import types

import blimp_cases as cases
import keras
import numpy as np
import pytest

from keras_tupe import (
    TupeBackbone,
    TupeMaskedLM,
    TupeMaskedPairLM,
    TupeTokenDiscriminator,
    TupeTokenizer,
)
from training.evaluate.sentences import OwnTokenLogLikelihood, PseudoLogLikelihood

CLS, SEP, MASK = 2, 3, 4
VOCABULARY = 31
IS_START = np.arange(VOCABULARY) % 3 > 0  # ids 6, 9, 12, ... go on with a word
SENTENCES = [
    [7, 8, 5],
    [7, 9, 12, 8, 6],
    [11],
    [5, 8, 7],
    [9, 6, 15, 18],
    [7, 8, 5],
    [10, 12, 13, 30, 21, 24, 8],
    [],
]


@functools.cache
def make(kind, num_segments=0, dtype="float64", vocabulary_size=VOCABULARY):
    """Returns a model whose predictions are far from even and depend on the context."""
    position = "absolute" if num_segments else "tupe_r"
    longest = cases.LONGEST if vocabulary_size == len(cases.ODDS) else 11
    sizes = (vocabulary_size, 1, 2, 6, 11)
    backbone = TupeBackbone(*sizes, position, None, 0.0, longest, num_segments, dtype=dtype)
    model, random = kind(backbone), np.random.default_rng(5)
    for weight in model.weights:
        weight.assign(random.normal(size=weight.shape))
    return model


def row_of(model, ids, before=(CLS,)):
    row = np.array([[*before, *ids, SEP]], "int32")
    inputs = {"token_ids": row, "padding_mask": np.ones_like(row)}
    return {**inputs, "segment_ids": np.zeros_like(row)} if model.backbone.num_segments else inputs


def masked(model, ids, word=False, before=(CLS,)):
    """The pseudo-log-likelihood of one sentence."""
    total = 0.0
    for place, target in enumerate(ids):
        seen = [*ids[:place], MASK, *ids[place + 1 :]]
        for later in range(place + 1, len(ids)):
            if not word or IS_START[ids[later]]:
                break
            seen[later] = MASK
        inputs = row_of(model, seen, before)
        inputs["mask_positions"] = np.array([[len(before) + place]], "int32")
        logits = model(inputs)
        logits = logits["masked_lm"] if isinstance(logits, dict) else logits
        logits = keras.ops.convert_to_numpy(logits)[0, 0].astype("float64")
        total += logits[target] - np.logaddexp.reduce(logits)
    return total


def own_tokens(model, ids):
    """The score of one sentence by a discriminator."""
    logits = keras.ops.convert_to_numpy(model(row_of(model, ids)))
    return -np.log1p(np.exp(logits[0, 1:-1].astype("float64"))).sum()


def scorer(model, word=False, batch_tokens=4096, before=(CLS,)):
    starts = (lambda ids: IS_START[ids]) if word else None
    return PseudoLogLikelihood(model, MASK, before, [SEP], starts, batch_tokens)


@pytest.mark.parametrize("word", [False, True])
@pytest.mark.parametrize(
    ("dtype", "tolerance"),
    [("float64", 1e-12), pytest.param("float32", 1e-6, marks=pytest.mark.slow)],
)
def test_scores_equal_the_equation_one_token_at_a_time(word, dtype, tolerance):
    model = make(TupeMaskedLM, dtype=dtype)
    found = scorer(model, word, batch_tokens=40).scores(SENTENCES)
    expected = [masked(model, ids, word) for ids in SENTENCES]
    np.testing.assert_allclose(found, expected, rtol=tolerance)
    assert found.dtype == "float64"
    assert found[0] == found[5]  # equal sentences tie exactly
    order = np.random.default_rng(3).permutation(len(SENTENCES))
    again = scorer(model, word, batch_tokens=13).scores([SENTENCES[place] for place in order])
    np.testing.assert_allclose(again, found[order], rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(("before", "num_segments"), [([CLS], 2), ([], 0)])
def test_the_frame_and_segments_are_those_of_the_model(before, num_segments):
    model = make(TupeMaskedLM, num_segments)
    found = scorer(model, before=before).scores(SENTENCES[:2])
    expected = [masked(model, ids, False, before) for ids in SENTENCES[:2]]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_scores_that_are_no_numbers_are_refused():
    model = make(TupeMaskedLM)
    before = keras.ops.convert_to_numpy(model.head.output_bias)
    model.head.output_bias.assign(np.where(before == before.max(), np.nan, before))
    try:
        with pytest.raises(ValueError, match="must be finite numbers"):
            scorer(model).scores(SENTENCES)
    finally:
        model.head.output_bias.assign(before)


class LogitOfToken(keras.Model):
    """A discriminator whose logits are known: one for each token, wherever it stands."""

    def __init__(self, logits):
        super().__init__()
        self.table = keras.ops.convert_to_tensor(logits, "float64")
        self.backbone = types.SimpleNamespace(num_segments=0)
        self.built = True

    def call(self, inputs, training=None):
        return keras.ops.take(self.table, inputs["token_ids"])


def test_a_discriminators_score_is_what_is_computed_by_hand():
    # a token is its own with probability 1 / (1 + exp(logit)): here 1/4, 1/2 and 3/4
    logits = np.full(11, 50.0)  # of the frame, which does not count
    logits[5:8] = [math.log(3), 0.0, -math.log(3)]
    found = OwnTokenLogLikelihood(LogitOfToken(logits), [CLS], [SEP]).scores(
        [[5, 6, 7], [6], [7, 7], []]
    )
    expected = [math.log(3 / 32), math.log(1 / 2), math.log(9 / 16), 0.0]
    np.testing.assert_allclose(found, expected, rtol=1e-14)


@pytest.mark.parametrize("num_segments", [0, pytest.param(2, marks=pytest.mark.slow)])
def test_a_discriminators_scores_equal_the_equation(num_segments):
    model = make(TupeTokenDiscriminator, num_segments)
    found = OwnTokenLogLikelihood(model, [CLS], [SEP], batch_tokens=5).scores(SENTENCES)
    np.testing.assert_allclose(found, [own_tokens(model, ids) for ids in SENTENCES], rtol=1e-12)


def test_a_model_of_pairs_is_scored_by_its_masked_tokens_in_the_first_segment():
    model = make(TupeMaskedPairLM, 2)
    found = scorer(model.masked_lm(), batch_tokens=20).scores(SENTENCES)
    np.testing.assert_allclose(found, [masked(model, ids) for ids in SENTENCES], rtol=1e-12)


@pytest.mark.parametrize(
    ("kind", "plain", "name"),
    [
        (TupeTokenDiscriminator, own_tokens, "own tokens"),
        pytest.param(TupeMaskedPairLM, masked, "token", marks=pytest.mark.slow),
    ],
)
def test_the_command_scores_presets_of_other_objectives(kind, plain, name, tmp_path):
    segments = 2 if kind is TupeMaskedPairLM else 0
    model = make(kind, segments, "float32", len(cases.ODDS))
    tokenizer, preset = TupeTokenizer(list(cases.ODDS)), tmp_path / "preset"
    model.preprocessor = kind.preprocessor_cls(
        tokenizer, sequence_length=cases.LONGEST, segments=bool(segments)
    )
    model.save_to_preset(str(preset))
    data, out = cases.write_pairs(tmp_path / "blimp"), tmp_path / "out"
    results, _ = cases.run(preset, data, out, "--paradigms", "agreement")
    assert results["score"] == name
    with open(out / "preset" / "agreement" / "pairs.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        for side in ("good", "bad"):
            ids = tokenizer.op.tokenize([row[side]]).to_list()[0]
            np.testing.assert_allclose(float(row[f"{side}_score"]), plain(model, ids), rtol=1e-5)
    if name == "own tokens":
        told = cases.failure(preset, data, tmp_path / "other", "--score", "word")
        assert "a discriminator of replaced tokens judges the sentence as it is" in told
        assert "Received: score='word'" in told
