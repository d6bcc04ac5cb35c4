"""Runs of `training.pretrain` with the objectives that have two losses."""

import json
import signal

import commands
import keras
import numpy as np
import pretrain_cases as cases
import pytest

from keras_tupe import TupeReplacedTokenDetector, TupeTokenDiscriminator, data, objectives
from training.command.settings import parse
from training.pretrain.run import VALIDATION_SEED
from training.pretrain.settings import Settings

REPLACED = {
    "objective": "replaced_token",
    "generator_share": 0.5,
    "dropout": 0.0,
    "embedding_dim": 24,
    "num_groups": 1,
}


@pytest.fixture(scope="module")
def replaced(rows, tmp_path_factory):
    """A run that came to its end, and what it printed."""
    out = tmp_path_factory.mktemp("replaced") / "run"
    printed, _ = cases.run(rows, out, **REPLACED)
    return out, printed


def test_the_preset_has_the_held_out_scores_of_the_run(replaced, rows):
    out, printed = replaced
    model = TupeReplacedTokenDetector.from_preset(str(out / "preset"))
    assert model.generator.backbone.hidden_dim == model.discriminator.backbone.hidden_dim // 2
    assert model.backbone.embedding_dim == 24
    assert model.backbone.num_groups == 1
    prepared = data.PreparedRows(rows, "valid")
    record = objectives.get("replaced_token")
    rule = record.rule(prepared, record.defaults)
    held_out = data.Rows(prepared, rule, batch_size=8, seed=VALIDATION_SEED)
    right, weight, losses = 0.0, 0.0, 0.0
    for step in range(cases.OPTIONS["valid_batches"]):
        inputs, labels, weights = held_out.evaluation_batch(step)
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
    np.testing.assert_allclose(accuracy, right / weight, rtol=1e-5)
    np.testing.assert_allclose(loss, losses / weight, rtol=1e-5)
    np.testing.assert_allclose(total, generator + 50 * loss, rtol=1e-5)
    assert "| masked accuracy | replaced-token accuracy |" in printed
    facts = json.loads((out / "settings.json").read_text())["held_out"]
    assert 0 < facts["predictions"] < weight


@pytest.mark.slow
def test_the_preset_is_a_discriminator_that_trains_on(replaced, rows, tmp_path):
    out, _ = replaced
    model = TupeTokenDiscriminator.from_preset(str(out / "preset"))
    assert model.preprocessor.sequence_length == cases.LENGTH
    options = {**REPLACED, "embedding_dim": None, "num_groups": None, "size": None}
    printed, _ = cases.run(rows, tmp_path / "run", preset=out / "preset", **options)
    assert "replaced-token accuracy" in printed


@pytest.mark.slow
def test_a_run_killed_during_a_save_ends_as_if_nothing_had_happened(replaced, rows, tmp_path):
    out = tmp_path / "run"
    moment = ("os.rename", r"\.step_0000000012\.safetensors\.partial", 1)
    process = cases.start(rows, out, moment=moment, **REPLACED)
    assert commands.ended(process) == -signal.SIGKILL, commands.log_of(out)
    assert cases.steps(out) == [6]
    _, told = cases.run(rows, out, **REPLACED)
    assert "goes on from step 6" in told
    cases.assert_same_run(out, replaced[0], 24, checkpoints=False)


@pytest.mark.parametrize("kind", ["next", pytest.param("order", marks=pytest.mark.slow)])
def test_pairs_are_trained_on(kind, tmp_path):
    rows = cases.make_rows(tmp_path / "pairs", more=("--pairs", kind))
    name = {"next": "next_sentence", "order": "sentence_order"}[kind]
    printed, _ = cases.run(rows, tmp_path / "run", objective=name)
    words = {"next": "next-sentence accuracy", "order": "sentence-order accuracy"}[kind]
    assert f"| masked accuracy | {words} |" in printed
    *_, written = cases.table(tmp_path / "run" / "valid.csv", "pair_loss", "pair_accuracy")
    assert 0.3 < float(written[0]) < 1.2
    assert 0 < float(written[1]) < 1


def test_settings_that_do_not_fit_the_objective(rows, tmp_path):
    out = tmp_path / "run"
    cases_of = {
        "--objective masked_lm has no use for --generator-share": {"generator_share": 0.5},
        "--generator-share must be above 0 and at most 1": {**REPLACED, "generator_share": 0},
        "--embedding-sharing must be one of": {**REPLACED, "embedding_sharing": "tide"},
        "--num-groups must divide the 2 layers of --size tiny": {"num_groups": 3},
        "prepared with `--pairs next`": {"objective": "next_sentence"},
    }
    for expected, options in cases_of.items():
        message = cases.failure(rows, out, **options)
        assert expected in message
        assert "Received: " in message


def test_the_identity_has_what_the_objective_uses(rows, tmp_path):
    words = cases.arguments(rows, tmp_path / "run", **REPLACED)
    identity = parse(Settings, words).identity()
    assert identity["generator_share"] == 0.5
    assert identity["num_groups"] == 1
    usual = parse(Settings, cases.arguments(rows, tmp_path / "run")).identity()
    assert not {"generator_share", "embedding_sharing", "discriminator_weight"} & set(usual)
