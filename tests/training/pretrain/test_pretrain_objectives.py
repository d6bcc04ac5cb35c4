"""Runs of every kind of objective: what they leave, and how they go on after a kill."""

import json
import signal

import commands
import keras
import numpy as np
import pretrain_cases as cases
import pytest
import seq2seq_cases

from keras_tupe import TupeReplacedTokenDetector, TupeTokenDiscriminator, data, objectives
from training.pretrain.run import VALIDATION_SEED

RULES = {
    "masked_lm": data.Masking.of,
    "causal_lm": data.NextTokens.of,
    "seq2seq": lambda vocabulary: data.Denoising.of(vocabulary, mean_span=2.0),
}


def held_out_batches(rows, make_rule, name):
    """Returns the batches that a run of `cases.RUNS` was validated on."""
    prepared = data.PreparedRows(rows, "valid")
    held_out = data.Rows(prepared, make_rule(prepared), batch_size=8, seed=VALIDATION_SEED)
    count = cases.RUNS[name].get("valid_batches", cases.OPTIONS["valid_batches"])
    count = held_out.num_evaluation_batches if count == "none" else count
    return [held_out.evaluation_batch(step) for step in range(count)]


def num_characters(prepared, tokens):
    """Returns the characters of a text that tokens of WordPiece stand for."""
    pieces = [prepared.vocabulary.pieces[token] for token in tokens]
    words = [piece for piece in pieces if not piece.startswith("[")]
    inside = sum(len(word) - 2 if word.startswith("##") else len(word) + 1 for word in words)
    return inside + pieces.count("[UNK]")


@pytest.mark.parametrize("name", RULES)
def test_the_held_out_scores_are_those_of_the_preset_on_the_same_rows(name, run_of, rows):
    out, printed = run_of(name)
    model = objectives.get(name).task.from_preset(str(out / "preset"))
    prepared = data.PreparedRows(rows, "valid")
    loss, right, weight, characters = 0.0, 0.0, 0.0, 0
    for inputs, labels, weights in held_out_batches(
        rows, lambda valid: RULES[name](valid.vocabulary), name
    ):
        logits = np.asarray(keras.ops.convert_to_numpy(model(inputs)), "float64")
        loss += (weights * cases.losses(logits, labels)).sum()
        right += (weights * (logits.argmax(axis=-1) == labels)).sum()
        weight += weights.sum()
        characters += num_characters(prepared, labels[weights > 0])
    assert weight > 20
    *_, written = cases.table(out / "valid.csv", "valid_loss", "valid_accuracy")
    expected = [loss / weight, right / weight]
    np.testing.assert_allclose(list(map(float, written)), expected, rtol=1e-5)
    facts = json.loads((out / "settings.json").read_text())["held_out"]
    assert facts == {"predictions": weight, "characters": characters}
    accuracy = "masked accuracy" if name == "masked_lm" else "next-token accuracy"
    assert f"| held-out loss | {accuracy} |" in printed
    if name == "causal_lm":
        assert f"perplexity per token {np.exp(loss / weight):.4g}, perplexity per char" in printed
        assert f"per character {np.exp(loss / characters):.4g}." in printed
    if name == "seq2seq":
        assert not inputs["encoder_padding_mask"][-1].any()
        text = model.preprocessor
        assert (text.encoder_sequence_length, text.decoder_sequence_length) == (cases.LENGTH,) * 2
    else:
        assert model.preprocessor.sequence_length == cases.LENGTH
        assert (model.backbone.attention_pattern == "causal") == (name == "causal_lm")


def test_replaced_tokens_have_the_held_out_scores_of_the_run(run_of, rows):
    out, printed = run_of("replaced_token")
    model = TupeReplacedTokenDetector.from_preset(str(out / "preset"))
    assert model.generator.backbone.hidden_dim == model.discriminator.backbone.hidden_dim // 2
    assert (model.backbone.embedding_dim, model.backbone.num_groups) == (24, 1)
    record = objectives.get("replaced_token")
    right, weight, losses = 0.0, 0.0, 0.0
    for inputs, labels, weights in held_out_batches(
        rows, lambda valid: record.rule(valid, record.defaults), "replaced_token"
    ):
        found = keras.ops.convert_to_numpy(model(inputs)["replaced_token"])
        was_replaced = found[..., 1] != labels["replaced_token"]
        counted = weights["replaced_token"]
        logits = found[..., 0].astype("float64")
        right += (((logits > 0) == was_replaced) * counted).sum()
        losses += ((np.logaddexp(0, logits) - was_replaced * logits) * counted).sum()
        weight += counted.sum()
    columns = "replaced_token_loss", "replaced_token_accuracy", "masked_lm_loss", "valid_loss"
    *_, written = cases.table(out / "valid.csv", *columns)
    loss, accuracy, generator, total = map(float, written)
    np.testing.assert_allclose([accuracy, loss], [right / weight, losses / weight], rtol=1e-5)
    np.testing.assert_allclose(total, generator + 50 * loss, rtol=1e-5)
    assert "| masked accuracy | replaced-token accuracy |" in printed
    facts = json.loads((out / "settings.json").read_text())["held_out"]
    assert 0 < facts["predictions"] < weight


@pytest.mark.parametrize("name", ["masked_lm", "causal_lm"])
def test_the_loss_of_the_log_begins_at_that_of_even_guesses_and_falls(name, run_of):
    losses = [float(loss) for (loss,) in cases.table(run_of(name)[0] / "log.csv", "loss")]
    assert abs(losses[0] - np.log(160)) < 0.4
    assert losses[-1] < losses[0] - 0.15


@pytest.mark.parametrize(
    "name",
    [
        "masked_lm",
        *(pytest.param(x, marks=pytest.mark.slow) for x in ("seq2seq", "replaced_token")),
    ],
)
def test_a_run_killed_during_a_save_ends_as_if_nothing_had_happened(name, run_of, rows, tmp_path):
    out, whole = tmp_path / "run", run_of(name)[0]
    options = {name: value for name, value in cases.RUNS[name].items() if name != "keep_steps"}
    process = cases.start(rows, out, moment=cases.DURING_A_SAVE, **options)
    assert commands.ended(process) == -signal.SIGKILL, commands.log_of(out)
    assert cases.steps(out) == [6]
    assert (out / "checkpoints" / ".unfinished-step_0000000012.safetensors").exists()
    cases.assert_whole_files(out)
    _, told = cases.run(rows, out, **options)
    assert "goes on from step 6" in told
    cases.assert_same_run(out, whole, options.get("steps", 24), checkpoints=False)


@pytest.mark.parametrize("kind", ["next", pytest.param("order", marks=pytest.mark.slow)])
def test_pairs_are_trained_on(kind, tmp_path):
    rows = cases.make_rows(tmp_path / "pairs", more=("--pairs", kind))
    name = {"next": "next_sentence", "order": "sentence_order"}[kind]
    printed, _ = cases.run(rows, tmp_path / "run", objective=name)
    assert f"| masked accuracy | {name.replace('_', '-')} accuracy |" in printed
    *_, written = cases.table(tmp_path / "run" / "valid.csv", "pair_loss", "pair_accuracy")
    assert 0.3 < float(written[0]) < 1.2
    assert 0 < float(written[1]) < 1


# === Presets of such runs ===


@pytest.mark.slow
def test_a_discriminator_trains_on(run_of, rows, tmp_path):
    preset = run_of("replaced_token")[0] / "preset"
    model = TupeTokenDiscriminator.from_preset(str(preset))
    assert model.preprocessor.sequence_length == cases.LENGTH
    options = {
        **cases.RUNS["replaced_token"],
        "embedding_dim": None,
        "num_groups": None,
        "size": None,
    }
    printed, _ = cases.run(rows, tmp_path / "run", preset=preset, **options)
    assert "replaced-token accuracy" in printed


@pytest.mark.slow
def test_a_restorer_writes_text_and_trains_further_on_rows_and_on_pairs(run_of, rows, tmp_path):
    preset = run_of("seq2seq")[0] / "preset"
    model = objectives.get("seq2seq").task.from_preset(str(preset))
    assert isinstance(model.generate("ba ne ka", max_length=6), str)
    options = {**cases.RUNS["seq2seq"], "dropout": 0.1, "size": None}
    printed, _ = cases.run(rows, tmp_path / "run", preset=preset, **options)
    assert "next-token accuracy" in printed
    files = {}
    for seed, name in enumerate(("train", "valid")):
        files[name] = seq2seq_cases.write_pairs(tmp_path / f"{name}.tsv", 20, seed, most=5)
    found, _, told = seq2seq_cases.run(preset, out=tmp_path / "pairs", **files)
    assert 0 <= found["valid"]["chrf"]["mean"] <= 100
    assert "step 12: held-out loss" in told
