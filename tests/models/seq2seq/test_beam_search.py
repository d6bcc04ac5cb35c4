"""Beam search finds the best text of all, with enough beams; and greedy search, without a cache."""

import functools
import itertools

import keras
import numpy as np
import pytest
from pair_models import NOT_ON_JAX, log_softmax, logits_of, pair_inputs, pair_lm
from position_cases import random_ids

from keras_tupe.models import BeamSearch

SAMPLERS = pytest.mark.skipif(
    NOT_ON_JAX, reason="KerasHub's samplers mix integers of 32 and 64 bits"
)
TOKENS, LENGTH, END = 5, 5, 4
KNOWN = [1, 1, 2]  # tokens that targets begin with
SOURCE_LENGTHS = [4, 2, 3]
SOURCES = random_ids(3, 4, seed=3) % TOKENS
BEGINNINGS = random_ids(3, LENGTH, seed=4) % END  # without an end token
ALPHAS = (0, 0.6, 1, 2)


@functools.cache
def toy(name):
    """Returns a model of five tokens, whose logits are neither flat nor sure; it stays as it is."""
    scale = {"tupe_r": 0.5, "absolute": 0.25}[name]  # with 0.5 it matters what came before
    return pair_lm(name, scale=scale, vocabulary_size=TOKENS, num_decoder_layers=1)


def given(rows=slice(None)):
    sources, beginnings = SOURCES[rows], BEGINNINGS[rows]
    return pair_inputs(sources, beginnings, SOURCE_LENGTHS[rows], KNOWN[rows])


def written(model, sampler, rows=slice(None), stop=(END,), run_eagerly=True):
    """Returns the tokens of each target, up to its end."""
    model.compile(sampler=sampler, run_eagerly=run_eagerly)
    found = model.generate(given(rows), stop_token_ids=stop)
    return [
        tuple(map(int, ids[mask.astype(bool)]))
        for ids, mask in zip(*map(np.array, found.values()), strict=True)
    ]


def beginning(row):
    """Returns the tokens that the target of a source begins with."""
    return tuple(map(int, BEGINNINGS[row, : KNOWN[row]]))


@functools.cache
def full_texts(name, row):
    """Returns all targets that fill a row, and log p of each token behind those given."""
    start = beginning(row)
    full = [start + rest for rest in itertools.product(range(TOKENS), repeat=LENGTH - len(start))]
    one = given(slice(row, row + 1))
    inputs = {key: np.repeat(value, len(full), axis=0) for key, value in one.items()}
    targets = np.array(full, "int32")
    inputs |= {"decoder_token_ids": targets, "decoder_padding_mask": np.ones_like(targets)}
    found = log_softmax(logits_of(toy(name), inputs))[:, len(start) - 1 : -1]
    return full, found


def every_text(name, row):
    """Returns log p and the number of the new tokens of each target of a source."""
    known, found = KNOWN[row], {}
    full, scores = full_texts(name, row)
    for text, of_tokens in zip(full, scores, strict=True):
        new = text[known:]
        count = new.index(END) + 1 if END in new else len(new)
        total = sum(of_tokens[index, new[index]] for index in range(count))
        found[text[: known + count]] = total, count
    assert sum(np.exp(total) for total, _ in found.values()) == pytest.approx(1, abs=1e-5)
    return found


@functools.cache
def of_next_tokens(name, row):
    """Returns log p of all next tokens behind each beginning of a target."""
    pairs, known = zip(*full_texts(name, row), strict=True), KNOWN[row]
    return {text[: known + n]: x[n] for text, x in pairs for n in range(LENGTH - known)}


@pytest.mark.parametrize("name", [pytest.param("tupe_r", marks=pytest.mark.slow), "absolute"])
def test_with_enough_beams_the_best_of_all_texts_is_found(name):
    model, answers = toy(name), {}
    texts = [every_text(name, row) for row in range(3)]
    for alpha in ALPHAS:
        wanted = []
        for found in texts:
            scores = {text: total / count**alpha for text, (total, count) in found.items()}
            best, second = sorted(scores, key=scores.get, reverse=True)[:2]
            assert scores[best] - scores[second] > 1e-5, "float32 tells them apart"
            wanted.append(best)
        answers[alpha] = written(model, BeamSearch(TOKENS ** (LENGTH - 1), length_penalty=alpha))
        assert answers[alpha] == wanted, alpha
    found = [text for texts in answers.values() for text in texts]
    assert len({texts[0][1:] for texts in answers.values()}) > 1, "the penalty matters"
    assert len({len(text) for text in found}) > 1, "texts end early and late"
    greedy = by_greed(name, (END,))
    assert any(texts != greedy for texts in answers.values()), "there is something to search"


def by_greed(name, stop):
    """Returns the targets of the likeliest token each time, by calls on whole texts."""
    found = []
    for row in range(3):
        text, scores = beginning(row), of_next_tokens(name, row)
        while len(text) < LENGTH and not (len(text) > KNOWN[row] and text[-1] in stop):
            text += (int(scores[text].argmax()),)
        found.append(text)
    return found


def by_beams(name, row, num_beams, alpha):
    """Returns the target of a beam search of one source, in lists, without a cache."""
    alive, ended = [(0.0, beginning(row))], []
    for count in range(1, LENGTH - KNOWN[row] + 1):
        longer = [
            (total + one, (*text, token))
            for total, text in alive
            for token, one in enumerate(of_next_tokens(name, row)[text])
        ]
        ended += [(total / count**alpha, text) for total, text in longer if text[-1] == END]
        longer = [(total, text) for total, text in longer if text[-1] != END]
        alive = sorted(longer, reverse=True)[:num_beams]
    return max([*ended, *((total / count**alpha, text) for total, text in alive)])[1]


@pytest.mark.parametrize("num_beams", [1, 2, pytest.param(3, marks=pytest.mark.slow)])
def test_few_beams_keep_the_likeliest_beginnings(num_beams):
    model = toy("tupe_r")
    for alpha in (0, 2):
        wanted = [by_beams("tupe_r", row, num_beams, alpha) for row in range(3)]
        assert written(model, BeamSearch(num_beams, length_penalty=alpha)) == wanted


@SAMPLERS
@pytest.mark.parametrize("name", ["tupe_r", pytest.param("absolute", marks=pytest.mark.slow)])
def test_greedy_search_writes_as_without_a_cache(name):
    model = toy(name)
    for stop in ((END,), (END, 2), ()):
        assert written(model, "greedy", stop=stop or None) == by_greed(name, stop)


def test_a_row_is_written_as_alone_and_by_one_beam_greedily_where_no_text_ends():
    model, sampler = toy("tupe_r"), BeamSearch(3, length_penalty=1)
    alone = [written(model, sampler, slice(row, row + 1))[0] for row in range(3)]
    assert written(model, sampler) == alone
    assert written(model, BeamSearch(1), stop=None) == by_greed("tupe_r", ())


@pytest.mark.slow
def test_the_compiled_search_writes_the_same():
    model, sampler = toy("tupe_r"), BeamSearch(3, length_penalty=0.6)
    assert written(model, sampler, run_eagerly=False) == written(model, sampler)


def test_a_search_survives_its_config_and_impossible_ones_are_refused():
    sampler = BeamSearch(3, length_penalty=0.6, temperature=2.0)
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(sampler))
    assert (again.num_beams, again.length_penalty, again.temperature) == (3, 0.6, 2.0)
    for wrong in (0, 2.0):
        sentence = f"`num_beams` must be a positive integer.*Received: num_beams={wrong}"
        with pytest.raises(ValueError, match=sentence):
            BeamSearch(wrong)
    for wrong in (-0.1, float("nan"), float("inf"), "1"):
        sentence = f"`length_penalty` must be a number at least 0.*{wrong}"
        with pytest.raises(ValueError, match=sentence):
            BeamSearch(length_penalty=wrong)
