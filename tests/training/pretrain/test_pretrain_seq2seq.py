"""Runs of `training.pretrain --objective seq2seq`: an encoder and a decoder that restore rows."""

import json
import signal

import commands
import keras
import numpy as np
import pretrain_cases as cases
import pytest
import seq2seq_cases

from keras_tupe import data
from keras_tupe.models import TupeSeq2SeqLM
from training.command.settings import parse
from training.pretrain import model as models
from training.pretrain.run import VALIDATION_SEED
from training.pretrain.settings import Settings

DENOISING = {"objective": "seq2seq", "mean_span": 2.0, "dropout": 0.0, "steps": 12}
DENOISING["valid_batches"] = "none"  # all of them, the last one filled up with padding


@pytest.fixture(scope="module")
def restoring(rows, tmp_path_factory):
    """A run that came to its end, and what it printed."""
    out = tmp_path_factory.mktemp("restoring") / "run"
    printed, _ = cases.run(rows, out, **DENOISING)
    return out, printed


def test_the_preset_has_the_held_out_scores_of_the_run(restoring, rows):
    out, printed = restoring
    model = TupeSeq2SeqLM.from_preset(str(out / "preset"))
    prepared = data.PreparedRows(rows, "valid")
    rule = data.Denoising.of(prepared.vocabulary, mean_span=2.0)
    held_out = data.Rows(prepared, rule, batch_size=8, seed=VALIDATION_SEED)
    loss, right, weight = 0.0, 0.0, 0.0
    for inputs, labels, weights in held_out.evaluation_batches():
        logits = keras.ops.convert_to_numpy(model(inputs)).astype("float64")
        logits -= logits.max(axis=-1, keepdims=True)
        chosen = np.take_along_axis(logits, labels[..., np.newaxis], axis=-1)[..., 0]
        loss += ((np.log(np.exp(logits).sum(axis=-1)) - chosen) * weights).sum()
        right += ((logits.argmax(axis=-1) == labels) * weights).sum()
        weight += weights.sum()
    assert not inputs["encoder_padding_mask"][-1].any()
    *_, written = cases.table(out / "valid.csv", "valid_loss", "valid_accuracy")
    np.testing.assert_allclose(
        list(map(float, written)), [loss / weight, right / weight], rtol=1e-5
    )
    assert "| held-out loss | next-token accuracy |" in printed
    facts = json.loads((out / "settings.json").read_text())["held_out"]
    assert facts["predictions"] == weight
    text = model.preprocessor
    assert (text.encoder_sequence_length, text.decoder_sequence_length) == (cases.LENGTH,) * 2


@pytest.mark.slow
def test_a_run_killed_during_a_save_ends_as_if_nothing_had_happened(restoring, rows, tmp_path):
    out = tmp_path / "run"
    process = cases.start(
        rows, out, moment=("os.rename", r"\.step_0000000012\.safetensors\.partial", 1), **DENOISING
    )
    assert commands.ended(process) == -signal.SIGKILL, commands.log_of(out)
    assert cases.steps(out) == [6]
    _, told = cases.run(rows, out, **DENOISING)
    assert "goes on from step 6" in told
    cases.assert_same_run(out, restoring[0], 12, checkpoints=False)


def test_new_models_of_one_seed_have_the_same_trunk(rows, tmp_path):
    prepared = data.PreparedRows(rows)
    found = []
    for position in ("absolute", "t5"):
        words = cases.arguments(rows, tmp_path / "run", position=position, **DENOISING)
        found.append(models.make_model(parse(Settings, words), prepared))
    ours, theirs = ({w.path: w for w in one.weights} for one in found)
    shared = [path for path in ours if path in theirs]
    assert len(shared) > 50
    for path in shared:
        np.testing.assert_array_equal(ours[path], theirs[path], err_msg=path)


def test_settings_that_an_encoder_and_a_decoder_have_no_use_for(rows, tmp_path):
    cases_of = {
        "--objective seq2seq has no use for --mask-rate": {"mask_rate": 0.2},
        "--objective seq2seq has no use for --embedding-dim": {"embedding_dim": 8},
        "--objective seq2seq has no use for --attention-pattern": {"attention_pattern": "causal"},
        "--infill-share must be above 0 and at most 1": {"infill_share": 0},
        "--mean-span must be from 1 to 100": {"mean_span": 0.5},
    }
    for expected, options in cases_of.items():
        message = cases.failure(rows, tmp_path / "run", **{**DENOISING, **options})
        assert expected in message
        assert "Received: " in message
    message = cases.failure(rows, tmp_path / "run", infill_share=0.2)
    assert "--objective masked_lm has no use for --infill-share" in message


@pytest.mark.slow
def test_the_preset_writes_text_and_trains_further_on_rows_and_on_pairs(restoring, rows, tmp_path):
    preset = restoring[0] / "preset"
    model = TupeSeq2SeqLM.from_preset(str(preset))
    assert isinstance(model.generate("ba ne ka", max_length=6), str)
    options = {**DENOISING, "dropout": 0.1, "size": None}
    printed, _ = cases.run(rows, tmp_path / "run", preset=preset, **options)
    assert "next-token accuracy" in printed
    files = {}
    for seed, name in enumerate(("train", "valid")):
        files[name] = seq2seq_cases.write_pairs(tmp_path / f"{name}.tsv", 20, seed, most=5)
    found, _, told = seq2seq_cases.run(preset, out=tmp_path / "pairs", **files)
    assert 0 <= found["valid"]["chrf"]["mean"] <= 100
    assert "step 12: held-out loss" in told
