"""Pseudo-log-likelihoods of token ids; needs no tokenizer, and runs on every backend."""

import copy
import functools

import keras
import numpy as np
import pytest

from keras_tupe import TupeBackbone, TupeMaskedLM
from training.evaluate.sentences import PseudoLogLikelihood

MASK, CLS, SEP = 4, 2, 3
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
    [5, 5],
]


@functools.cache
def make_model(dtype="float64", position="tupe_r", num_segments=0):
    """Returns a model whose predictions are far from even and depend on the context."""
    backbone = TupeBackbone(
        VOCABULARY, 1, 2, 6, 11, position, None, 0.0, 11, num_segments, dtype=dtype
    )
    model = TupeMaskedLM(backbone)
    random = np.random.default_rng(5)
    for weight in model.weights:
        weight.assign(random.normal(size=weight.shape, scale=1.0))
    return model


@functools.cache
def cached_scorer(model):
    return PseudoLogLikelihood(model, MASK, [CLS], [SEP])


def scorer(model, word=False, batch_tokens=4096):
    """Returns a scorer that shares its compiled function with the others of the model."""
    made = copy.copy(cached_scorer(model))
    made.word_starts = (lambda ids: IS_START[ids]) if word else None
    made.batch_tokens = batch_tokens
    return made


def plain_score(model, ids, word, before=(CLS,)):
    """The equation, with a plain call of the model for each token."""
    total = 0.0
    for place, target in enumerate(ids):
        masked = list(ids)
        masked[place] = MASK
        for later in range(place + 1, len(ids)):
            if not word or IS_START[ids[later]]:
                break
            masked[later] = MASK
        row = np.array([[*before, *masked, SEP]], "int32")
        inputs = {"token_ids": row, "padding_mask": np.ones_like(row)}
        inputs["mask_positions"] = np.array([[len(before) + place]], "int32")
        if model.backbone.num_segments:
            inputs["segment_ids"] = np.zeros_like(row)
        logits = keras.ops.convert_to_numpy(model(inputs))[0, 0].astype("float64")
        total += logits[target] - np.log(np.sum(np.exp(logits - logits.max()))) - logits.max()
    return total


@pytest.mark.parametrize("word", [False, True])
@pytest.mark.parametrize(
    ("dtype", "tolerance"),
    [("float64", 1e-12), pytest.param("float32", 1e-6, marks=pytest.mark.slow)],
)
def test_scores_equal_the_equation_one_token_at_a_time(word, dtype, tolerance):
    model = make_model(dtype)
    found = scorer(model, word, batch_tokens=40).scores(SENTENCES)
    some = [1, 2, 4, 6, 7]
    expected = [plain_score(model, SENTENCES[place], word) for place in some]
    np.testing.assert_allclose(found[some], expected, rtol=tolerance)
    assert found.dtype == "float64"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "kwargs"), [([CLS], {"num_segments": 2, "position": "absolute"}), ([], {})]
)
def test_the_frame_and_segments_are_those_of_the_model(before, kwargs):
    model = make_model(**kwargs)
    made = scorer(model)
    made.before = before
    found = made.scores(SENTENCES[:2])
    expected = [plain_score(model, ids, False, before) for ids in SENTENCES[:2]]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("word", [False, True])
def test_batches_and_order_change_nothing(word):
    model = make_model()
    whole = scorer(model, word).scores(SENTENCES)
    assert whole[0] == whole[5]  # equal sentences tie exactly
    for batch_tokens in (1, 13):
        np.testing.assert_allclose(
            scorer(model, word, batch_tokens=batch_tokens).scores(SENTENCES), whole, rtol=1e-6
        )
    order = np.random.default_rng(3).permutation(len(SENTENCES))
    shuffled = scorer(model, word).scores([SENTENCES[place] for place in order])
    np.testing.assert_allclose(shuffled, whole[order], rtol=1e-6)


def test_the_two_scores_differ_where_a_word_has_several_pieces():
    model = make_model()
    token, word = scorer(model).scores(SENTENCES), scorer(model, word=True).scores(SENTENCES)
    has_pieces = [any(not IS_START[piece] for piece in ids[1:]) for ids in SENTENCES]
    np.testing.assert_allclose(token[np.invert(has_pieces)], word[np.invert(has_pieces)])
    assert (np.abs(token - word)[has_pieces] > 1e-4).all()


def test_a_distinct_sentence_is_scored_once_and_every_token_is_counted():
    made, seen = scorer(make_model(), batch_tokens=20), []
    forward = made._forward
    made._forward = lambda inputs: seen.append(inputs["token_ids"].shape) or forward(inputs)
    made.scores(SENTENCES)
    if keras.backend.backend() != "jax":  # which gets full batches
        tokens = sum(len(ids) for ids in {tuple(ids) for ids in SENTENCES})
        assert sum(rows for rows, _ in seen) == tokens
    assert max(rows * width for rows, width in seen) <= 20


def test_scores_that_are_no_numbers_are_refused():
    model = make_model()
    before = keras.ops.convert_to_numpy(model.head.output_bias)
    model.head.output_bias.assign(np.where(before == before.max(), np.nan, before))
    try:
        with pytest.raises(ValueError, match="must be finite numbers"):
            scorer(model).scores(SENTENCES)
    finally:
        model.head.output_bias.assign(before)
