"""Perplexity by position, scores of sentences, and runs with a memory."""

import json

import commands
import keras
import numpy as np
import pretrain_cases as cases
import pytest
from commands import words_of

from keras_tupe import TupeCausalLM, data
from training.evaluate.sentences import LogLikelihood

MEMORY = {"objective": "causal_lm", "position": "t5", "dropout": 0.0, "steps": 6, "valid_every": 6}
MEMORY |= {"memory_length": 4, "segment_length": 5}


@pytest.fixture(scope="module")
def remembering(rows, tmp_path_factory):
    """The preset of a run with a memory."""
    out = tmp_path_factory.mktemp("remembering") / "run"
    cases.run(rows, out, **MEMORY)
    return out / "preset"


def losses(model, inputs, labels):
    logits = np.asarray(keras.ops.convert_to_numpy(model(inputs)), "float64")
    return cases.losses(logits, labels)


def without_memory(model):
    """Returns a model of the same weights that sees whole rows."""
    config = {**model.backbone.get_config(), "memory_length": 0, "segment_length": None}
    whole = TupeCausalLM(type(model.backbone).from_config(config))
    for old, new in zip(model.weights, whole.weights, strict=True):
        new.assign(old)
    return whole


def test_perplexity_by_position_is_that_of_the_losses(run_of, remembering, rows, tmp_path):
    """Of a preset without a memory; and with its own, none, and one longer than a row."""
    plain = run_of("causal_lm")[0] / "preset"
    model = TupeCausalLM.from_preset(str(remembering))
    assert (model.backbone.memory_length, model.backbone.segment_length) == (4, 5)
    prepared = data.PreparedRows(rows, "valid")
    numbers = np.arange(len(prepared))
    rule = data.NextTokens.of(prepared.vocabulary)
    inputs, labels, weights = rule.examples(prepared[numbers], numbers, 0)
    by_bin = {}
    for preset, memory, judge in (
        (plain, None, TupeCausalLM.from_preset(str(plain))),
        (remembering, None, model),
        (remembering, 0, None),
        (remembering, 14, without_memory(model)),
    ):
        out = tmp_path / f"{preset.parents[1].name}_{memory}"
        words = words_of(preset, data=rows, out=out, bins=3, memory_length=memory)
        ended = commands.run("evaluate perplexity", *words)
        assert ended.code == 0, ended.err
        assert (out / "positions.png").is_file()
        results = json.loads((out / "study.json").read_text())
        of_preset = 4 if preset == remembering else 0
        assert results["memory_length"] == (of_preset if memory is None else memory)
        assert results["trained_length"] == cases.LENGTH
        bins = [(one["first"], one["last"]) for one in results["bins"]]
        assert bins == [(1, 5), (6, 10), (11, 15)]
        if preset == remembering:
            by_bin[memory] = [one["loss"] for one in results["bins"]]
        if judge is None:
            continue
        all_losses = losses(judge, inputs, labels)
        for one in results["bins"]:
            columns = slice(one["first"] - 1, one["last"])
            some = weights[:, columns]
            assert one["tokens"] == some.sum()
            expected = (all_losses[:, columns] * some).sum() / some.sum()
            np.testing.assert_allclose(one["loss"], expected, rtol=1e-5)
        total = (all_losses * weights).sum() / weights.sum()
        per_token = results["numbers"]["perplexity per token"]
        np.testing.assert_allclose([results["loss"], np.log(per_token)], total, rtol=1e-5)
    for memory in (0, 14):  # the first segment has nothing before it
        np.testing.assert_allclose(by_bin[memory][0], by_bin[None][0], rtol=1e-5)
    assert abs(by_bin[0][1] - by_bin[14][1]) > 1e-6


def test_a_masked_preset_has_no_perplexity(done, rows, tmp_path):
    words = words_of(done[0] / "preset", data=rows, out=tmp_path / "found")
    message = commands.run("evaluate perplexity", *words).said
    assert "PRESET must be a causal language model" in message
    assert not (tmp_path / "found" / "study.json").exists()


def test_sentences_are_scored_from_left_to_right(run_of):
    model = TupeCausalLM.from_preset(str(run_of("causal_lm")[0] / "preset"))
    sentences = [[7, 8, 9], [11], [], [7, 8, 9], [20, 21, 22, 23, 24]]
    found = LogLikelihood(model, [2], batch_tokens=7).scores(sentences)
    for number in (0, 1, 4):
        row = np.array([[2, *sentences[number]]])
        inputs = {"token_ids": row[:, :-1], "padding_mask": np.ones_like(row[:, :-1])}
        expected = -losses(model, inputs, row[:, 1:]).sum()
        np.testing.assert_allclose(found[number], expected, rtol=1e-5)
    assert found[2] == 0
    assert found[0] == found[3]
    without = LogLikelihood(model, [], batch_tokens=7).scores(sentences)
    assert without[1] == 0  # nothing predicts the first token
    assert 0 > without[0] > found[0]
