"""Pruning: curves over the share of heads or weights that are removed."""

import json

import commands
import keras
import numpy as np
import pytest
from blimp_cases import LONGEST, ODDS, make_model, write_pairs
from glue_cases import save_preset, write_tasks
from run_cases import picture

from keras_tupe import TupeMaskedLM, TupeMaskedLMPreprocessor, TupeTextClassifier, TupeTokenizer
from keras_tupe.metrics import wilson_interval
from keras_tupe.models import share_of_zeros
from training.studies.prune.runs import Prune
from training.studies.prune.settings import Settings
from training.study.folder import digest_of

PAIRS = {
    ("agreement", "morphology", "subject_verb_agreement"): [
        ("the cat sat .", "the cat sit ."),
        ("the dog sit .", "the dog sat ."),
        ("the dogs sit .", "the dogs sat ."),
    ]
    * 3
}
FEW = ("--limit", 5, "--rows", 4, "--seeds", 1)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_pairs(tmp_path_factory.mktemp("blimp"), PAIRS)


@pytest.fixture(scope="module")
def preset(tmp_path_factory):
    keras.utils.set_random_seed(0)
    model = make_model(position="tupe_r", initializer_range=0.5)
    model.preprocessor = TupeMaskedLMPreprocessor(TupeTokenizer(list(ODDS)), LONGEST)
    folder = tmp_path_factory.mktemp("preset")
    model.save_to_preset(str(folder))
    return folder


def run(preset, data, out, *more):
    told = commands.done("study", "prune", preset, "--data", data, "--out", out, *FEW, *more)
    return json.loads((out / "study.json").read_text()), told


def test_heads_go_by_importance_and_the_command_goes_on(data, preset, tmp_path, monkeypatch):
    out, words = tmp_path / "curve", ("--task", "blimp", "--rounds", 0)
    results, told = run(preset, data, out, *words, "--heads", 0.5, 0.5, "--keep-presets")
    (row,) = results["importance"]
    by_name = {(p["order"], p["share"]): p for p in results["points"]}
    assert set(by_name) == {("none", 0)} | {(order, 0.5) for order in ("importance", "random")}
    half = by_name["importance", 0.5]
    assert half["removed"] == {"0": [int(np.argmin(row))]}
    assert (half["heads"], by_name["none", 0]["heads"]) == (1, 2)
    assert half["parameters"] < by_name["none", 0]["parameters"]
    low, high = wilson_interval(half["right"], 5)
    assert half["total"] == 5
    assert f"{100 * low:.1f} to {100 * high:.1f}" in told
    folder = out / "heads/share-0.5/importance/preset"
    pruned = TupeMaskedLM.from_preset(str(folder))
    assert pruned.backbone.kept_heads == [[int(np.argmax(row))]]
    picture(out / "study.png")
    report, held = Prune.report, []

    def watched(self, results):
        held.append((out / ".lock").exists())
        return report(self, results)

    monkeypatch.setattr(Prune, "report", watched)
    ended = commands.run(
        "study", "prune", preset, "--data", data, "--out", out, *FEW, *words,
        *("--heads", 0.5, 0.5, "--keep-presets"),
    )  # fmt: skip
    assert held == [True], "results are written while the folder is held"
    assert ended.code == 0
    assert "4 of 4 runs are there already" in ended.err
    assert json.loads((out / "study.json").read_text())["points"] == results["points"]


def test_what_numbers_depend_on_makes_other_runs(tmp_path):
    data = write_tasks(tmp_path / "glue", "sst2", train=24, dev=8)
    given = {"preset": str(save_preset(tmp_path / "preset")), "data": str(data), "task": "sst2"}

    def digests(**changes):
        settings = Settings(**given, heads=("0.5",), out=str(tmp_path), **changes)
        return {run.name: digest_of(run) for run in Prune(settings).plan(None)}

    before = digests()
    for changes in ({"rows": 4}, {"normalize": False}, {"epochs": 1}, {"finetune_epochs": 1}):
        after = digests(**changes)
        points = before.keys() - {"classifier"}
        assert all(after[name] != before[name] for name in points), changes


@pytest.mark.slow
def test_exports_are_timed_and_weights_go_by_size(data, preset, tmp_path):
    out = tmp_path / "curve"
    words = ("--task", "blimp", "--rounds", 2, "--heads", 0.5, "--weights", 0.3)
    results, told = run(preset, data, out, *words)
    assert Settings(weights=("0.3",)).shares("weights") == [0.1, 0.2, 0.3]
    zeros = {p["share"]: p["zeros"] for p in results["points"] if p["order"] == "size"}
    assert zeros == pytest.approx({0.1: 0.1, 0.2: 0.2, 0.3: 0.3}, abs=0.02)
    timed = results["latency"]["milliseconds"]
    assert {"none/share-0/none", "heads/share-0.5/importance"} <= set(timed)
    assert all(0 < entry["low"] <= entry["median"] <= entry["high"] for entry in timed.values())
    assert "Latency" in told


@pytest.mark.slow
def test_sst2_fine_tunes_a_classifier_and_again_after_pruning(tmp_path):
    data = write_tasks(tmp_path / "glue", "sst2")
    preset = save_preset(tmp_path / "preset")
    out = tmp_path / "curve"
    words = ("--task", "sst2", "--rounds", 0, "--epochs", 16, "--learning-rate", 0.01)
    words += ("--finetune-epochs", 1, "--weights", 0.5, 0.5, "--batch-size", 16, "--keep-presets")
    results, _ = run(preset, data, out, *words)
    whole = next(point for point in results["points"] if point["kind"] == "none")
    assert whole["right"] / whole["total"] > 0.8  # as a classifier that has learned
    kept = TupeTextClassifier.from_preset(str(out / "weights/share-0.5/size/preset"))
    assert share_of_zeros(kept) == pytest.approx(0.5, abs=0.01)  # after training
    classifier = out / "classifier/preset"
    words = ("--task", "sst2", "--rounds", 0, "--heads", 0.5, 0.5)
    again, _ = run(classifier, data, tmp_path / "again", *words)
    assert {p["total"] for p in again["points"]} == {whole["total"]}
    assert not (tmp_path / "again/classifier").exists()


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--heads", "1"], "--heads must be shares from 0 to below 1"),
        (["--weights", "many"], "--weights must be shares from 0 to below 1"),
        ([], "--heads or --weights must be given"),
        (["--heads", "0.5", "--finetune-epochs", "2"], "--finetune-epochs is for sst2"),
        (["--heads", "0.5", "--task", "blim"], "the nearest is 'blimp'"),
    ],
)
def test_mistakes_are_refused_before_anything_is_made(words, text, data, preset, tmp_path):
    out = tmp_path / "none"
    given = [preset, "--task", "blimp", "--data", data, "--out", out, *words]
    assert text in commands.refusal("study", "prune", *map(str, given))
    assert not out.exists()


def test_a_preset_of_another_kind_is_refused(data, tmp_path):
    preset = save_preset(tmp_path / "encoder", kind="backbone")
    words = ("--task", "blimp", "--data", data, "--heads", 0.5, "--out", tmp_path / "out")
    assert "must be a masked language model" in commands.refusal("study", "prune", preset, *words)
