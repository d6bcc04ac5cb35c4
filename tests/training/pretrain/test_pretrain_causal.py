"""Runs of `training.pretrain --objective causal_lm`, and what is measured of their presets."""

import dataclasses
import json

import commands
import keras
import numpy as np
import pretrain_cases as cases
import pytest
from commands import words_of
from made_once import made_once

from keras_tupe import TupeCausalLM, data
from training.command.settings import parse
from training.evaluate_blimp.scorer import LogLikelihood
from training.pretrain.run import VALIDATION_SEED
from training.pretrain.settings import Settings

CAUSAL = {"objective": "causal_lm", "position": "t5", "dropout": 0.0}


@pytest.fixture(scope="session")
def causal(rows, tmp_path_factory):
    """A run that came to its end, and what it printed."""

    def make(folder):
        folder.mkdir()
        printed, _ = cases.run(rows, folder / "run", **CAUSAL)
        (folder / "printed.txt").write_text(printed, encoding="utf-8")

    folder = made_once(tmp_path_factory, "pretrain_causal", make)
    return folder / "run", (folder / "printed.txt").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def preset(causal):
    return TupeCausalLM.from_preset(str(causal[0] / "preset"))


def log_shares(model, inputs):
    """Logarithms of the shares of all tokens, float64, by the model's own logits."""
    logits = np.asarray(keras.ops.convert_to_numpy(model(inputs)), "float64")
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def losses(model, inputs, labels):
    return -np.take_along_axis(log_shares(model, inputs), labels[..., None], axis=-1)[..., 0]


def test_the_held_out_scores_are_those_of_the_preset_on_every_token(causal, preset, rows):
    out, printed = causal
    prepared = data.PreparedRows(rows, "valid")
    held_out = data.Rows(
        prepared, data.NextTokens.of(prepared.vocabulary), batch_size=8, seed=VALIDATION_SEED
    )
    loss, right, weight, characters = 0.0, 0.0, 0.0, 0
    for step in range(cases.OPTIONS["valid_batches"]):
        inputs, labels, weights = held_out.evaluation_batch(step)
        loss += (weights * losses(preset, inputs, labels)).sum()
        right += (weights * (log_shares(preset, inputs).argmax(axis=-1) == labels)).sum()
        weight += weights.sum()
        pieces = [prepared.vocabulary.pieces[i] for i in labels[weights > 0]]
        counted = [x for x in pieces if not x.startswith("[")]
        characters += sum(len(x) - 2 if x.startswith("##") else len(x) + 1 for x in counted)
        characters += pieces.count("[UNK]")
    assert weight > 100
    *_, written = cases.table(out / "valid.csv", "valid_loss", "valid_accuracy")
    np.testing.assert_allclose(float(written[0]), loss / weight, rtol=2e-6)
    np.testing.assert_allclose(float(written[1]), right / weight, rtol=2e-6)
    record = json.loads((out / "settings.json").read_text())
    assert record["held_out"] == {"predictions": weight, "characters": characters}
    per_token, per_character = np.exp(loss / weight), np.exp(loss / characters)
    assert f"perplexity per token {per_token:.4g}, perplexity per character" in printed
    assert f"per character {per_character:.4g}." in printed
    assert "next-token accuracy" in printed
    assert "masked" not in printed


def test_the_run_learns_and_its_preset_is_causal(causal, preset):
    found = [float(loss) for (loss,) in cases.table(causal[0] / "log.csv", "loss")]
    assert abs(found[0] - np.log(160)) < 0.4
    assert found[-1] < found[0] - 0.15
    assert preset.backbone.attention_pattern == "causal"
    assert preset.preprocessor.sequence_length == cases.LENGTH


def test_perplexity_by_position_is_that_of_the_losses(causal, preset, rows, tmp_path):
    words = words_of(causal[0] / "preset", data=rows, out=tmp_path / "found", bins=3)
    ended = commands.run("evaluate_perplexity", *words)
    assert ended.code == 0, ended.err
    results = json.loads((tmp_path / "found" / "results.json").read_text())
    assert (tmp_path / "found" / "positions.png").is_file()
    prepared = data.PreparedRows(rows, "valid")
    inputs, labels, weights = data.NextTokens.of(prepared.vocabulary).examples(
        prepared[np.arange(len(prepared))], np.arange(len(prepared)), 0
    )
    all_losses = losses(preset, inputs, labels)
    assert [(one["first"], one["last"]) for one in results["bins"]] == [(1, 5), (6, 10), (11, 15)]
    for one in results["bins"]:
        columns = slice(one["first"] - 1, one["last"])
        some = weights[:, columns]
        assert one["tokens"] == some.sum()
        expected = (all_losses[:, columns] * some).sum() / some.sum()
        np.testing.assert_allclose(one["loss"], expected, rtol=1e-5)
    total = (all_losses * weights).sum() / weights.sum()
    np.testing.assert_allclose(results["loss"], total, rtol=1e-5)
    np.testing.assert_allclose(results["numbers"]["perplexity per token"], np.exp(total), rtol=1e-5)
    assert results["trained_length"] == cases.LENGTH


def test_a_masked_preset_has_no_perplexity(done, rows, tmp_path):
    words = words_of(done[0] / "preset", data=rows, out=tmp_path / "found")
    message = commands.run("evaluate_perplexity", *words).said
    assert "PRESET must be a causal language model" in message
    assert not (tmp_path / "found" / "results.json").exists()


def test_sentences_are_scored_from_left_to_right(preset):
    sentences = [[7, 8, 9], [11], [], [7, 8, 9], [20, 21, 22, 23, 24]]
    found = LogLikelihood(preset, [2], batch_tokens=7).scores(sentences)
    for number in (0, 1, 4):
        row = np.array([[2, *sentences[number]]])
        inputs = {"token_ids": row[:, :-1], "padding_mask": np.ones_like(row[:, :-1])}
        expected = -losses(preset, inputs, row[:, 1:]).sum()
        np.testing.assert_allclose(found[number], expected, rtol=1e-5)
    assert found[2] == 0
    assert found[0] == found[3]
    without = LogLikelihood(preset, [], batch_tokens=7).scores(sentences)
    assert without[1] == 0  # nothing predicts the first token
    assert 0 > without[0] > found[0]


def test_settings_of_other_objectives_and_patterns_are_refused(rows, tmp_path):
    out = tmp_path / "run"
    window = {"attention_pattern": "sliding_window"}
    cases_of = {
        "'sentence_order', 'seq2seq']; the nearest is 'causal_lm'": {"objective": "casual_lm"},
        "--objective causal_lm has no use for --mask-rate": {**CAUSAL, "mask_rate": 0.2},
        "--attention-pattern must be one of": {"attention_pattern": "casual"},
        "such as --attention-pattern causal. Received: 'full'": {
            **CAUSAL,
            "attention_pattern": "full",
        },
        "such as --attention-pattern causal. Received: 'sliding_window'": {**CAUSAL, **window},
        "--attention-pattern: The position method 'free_table' is not defined for": {
            **window,
            "position": "free_table",
        },
        "--pattern-options must be JSON": {**window, "pattern_options": "{window"},
        "--pattern-options: The attention pattern has no option 'windw'.": {
            **window,
            "pattern_options": '{"windw": 3}',
        },
    }
    for expected, options in cases_of.items():
        message = cases.failure(rows, out, **options)
        assert expected in message
        assert "Received: " in message


def test_a_window_is_an_option_of_the_run(rows, tmp_path):
    options = {"attention_pattern": "sliding_window", "pattern_options": '{"window": 3}'}
    words = cases.arguments(rows, tmp_path / "run", **options)
    identity = parse(Settings, words).identity()
    assert identity["attention_pattern"] == "sliding_window"
    assert identity["pattern_options"]["window"] == 3
    assert identity["objective"] == "masked_lm"
    usual = parse(Settings, cases.arguments(rows, tmp_path / "run"))
    assert usual.identity()["attention_pattern"] == "full"
    causal = dataclasses.replace(usual, objective="causal_lm").identity()
    assert causal["attention_pattern"] == "causal"
    assert "mask_rate" not in causal


MEMORY = {**CAUSAL, "memory_length": 4, "segment_length": 5, "steps": 6, "valid_every": 6}


def test_a_run_with_a_memory(rows, tmp_path):
    """From the command to perplexity by position with a longer memory."""
    cases.run(rows, tmp_path / "run", **MEMORY)
    preset = tmp_path / "run" / "preset"
    model = TupeCausalLM.from_preset(str(preset))
    assert (model.backbone.memory_length, model.backbone.segment_length) == (4, 5)
    found = {}
    for memory in (None, 0, 14):
        options = {} if memory is None else {"memory_length": memory}
        words = words_of(preset, data=rows, out=tmp_path / f"found_{memory}", bins=3, **options)
        ended = commands.run("evaluate_perplexity", *words)
        assert ended.code == 0, ended.err
        record = json.loads((tmp_path / f"found_{memory}" / "results.json").read_text())
        assert record["memory_length"] == (4 if memory is None else memory)
        found[memory] = [one["loss"] for one in record["bins"]]
    prepared = data.PreparedRows(rows, "valid")
    numbers = np.arange(len(prepared))
    inputs, labels, weights = data.NextTokens.of(prepared.vocabulary).examples(
        prepared[numbers], numbers, 0
    )
    config = {**model.backbone.get_config(), "memory_length": 0, "segment_length": None}
    whole = TupeCausalLM(type(model.backbone).from_config(config))
    for old, new in zip(model.weights, whole.weights, strict=True):
        new.assign(old)
    for other, memory in ((whole, 14), (model, None)):
        all_losses = losses(other, inputs, labels)
        for number, first in enumerate((0, 5, 10)):
            columns = slice(first, first + 5)
            some = weights[:, columns]
            expected = (all_losses[:, columns] * some).sum() / some.sum()
            np.testing.assert_allclose(found[memory][number], expected, rtol=1e-5)
    for memory in (0, 14):  # the first segment has nothing before it
        np.testing.assert_allclose(found[memory][0], found[None][0], rtol=1e-5)
    assert abs(found[0][1] - found[14][1]) > 1e-6


def test_a_memory_that_cannot_be_is_refused(rows, tmp_path):
    out = tmp_path / "run"
    needed = {
        r"not defined for a memory of earlier segments: [CLS] is untied": {"position": "tupe_r"},
        "carry positions": {"position": "absolute"},
        "no token sees later ones": {"objective": "masked_lm"},
        "--max-sequence-length must be at least that of memory and segment, 9": {
            "position": "shaw",
            "max_sequence_length": 8,
        },
        "--memory-length must be an integer >= 0": {"memory_length": -1},
        "--segment-length must be an integer >= 1": {"segment_length": 0},
        "--objective seq2seq has no use for --memory-length, --segment-length": {
            "objective": "seq2seq"
        },
    }
    for expected, options in needed.items():
        assert expected in cases.failure(rows, out, **{**MEMORY, **options})
        assert not out.exists()
