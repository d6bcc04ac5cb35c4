"""Training on pairs by the command: what it leaves, and that it goes on where it was stopped."""

import shutil

import commands
import keras
import numpy as np
import pytest
import seq2seq_cases as cases
from matplotlib.image import imread

from keras_tupe.models import BeamSearch, TupeSeq2SeqLM


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A preset and three files."""
    folder = tmp_path_factory.mktemp("seq2seq")
    cases.save_preset(folder / "preset")
    for seed, (name, number) in enumerate({"train": 40, "valid": 9, "test": 5}.items()):
        cases.write_pairs(folder / f"{name}.tsv", number, seed)
    return folder


@pytest.fixture(scope="module")
def files(folder):
    return {name: folder / f"{name}.tsv" for name in ("train", "valid", "test")}


@pytest.fixture(scope="module")
def done(folder, files):
    """The folder of a run, its results, and what was printed."""
    results, printed, told = cases.run(folder / "preset", out=folder / "out", **files)
    return folder / "out", results, printed, told


def test_a_run_leaves_scores_predictions_curves_and_a_preset(done, files):
    out, results, printed, told = done
    assert {path.name for path in out.iterdir() if path.name[0] != "."} == {
        *("seed-0", "results.json", "results.md", "curves.png")
    }
    for name, file in (("valid", "predictions.tsv"), ("test", "predictions-test.tsv")):
        found = cases.lines(out / "seed-0" / file)
        assert [row[:2] for row in found] == cases.lines(files[name])
        exact = np.mean([100 * (target == written) for _, target, written in found])
        assert results[name]["exact_match"] == {"values": [exact], "mean": exact}
        assert 0 <= results[name]["bleu"]["mean"] <= 100
        assert results["pairs"][name] == {"used": len(found), "cut": {"source": 0, "target": 0}}
    assert results["steps"] == 12
    assert results["settings"]["batch_size"] == 16
    assert results["command"].startswith("python -m training.finetune_seq2seq")
    assert {"commit", "machine", "seconds"} <= set(results)
    assert (out / "results.md").read_text() in printed
    assert "| seed 0 |" in printed
    assert "version:2" in printed
    assert "step 12: held-out loss" in told
    assert f"seed-0: exact match {results['valid']['exact_match']['mean']:.2f}, chrF" in told
    assert min(imread(out / "curves.png").shape[:2]) > 200


def test_the_preset_of_a_run_writes_what_its_predictions_say(done):
    out = done[0]
    found = cases.lines(out / "seed-0" / "predictions.tsv")
    model = TupeSeq2SeqLM.from_preset(str(out / "seed-0" / "preset"))
    assert model.generate([source for source, _, _ in found]) == [row[2] for row in found]


def test_a_folder_of_other_settings_or_pairs_is_refused(done, folder, files):
    words = cases.arguments(folder / "preset", out=done[0], **{**files, "steps": 13})
    message = commands.refusal("finetune_seq2seq", *words)
    assert message.endswith("Received: seed-0, steps: 12 -> 13")
    words = cases.arguments(folder / "preset", out=done[0], **{**files, "valid": files["test"]})
    assert "seed-0, valid: " in commands.refusal("finetune_seq2seq", *words)


def test_the_command_names_its_options():
    assert "--label-smoothing" in commands.done("finetune_seq2seq", "--help")


# Long runs


@pytest.mark.slow
def test_a_new_model_learns_to_copy(tmp_path):
    train = cases.write_pairs(tmp_path / "train.tsv", 3000)
    valid = cases.write_pairs(tmp_path / "valid.tsv", 100, seed=1)
    files = {"train": train, "valid": valid, "vocabulary_size": 100, "size": "tiny"}
    options = {"batch_size": 64, "steps": 600, "dropout": 0.0, "num_beams": 2}
    results, _, _ = cases.run(out=tmp_path / "out", **files, **options)
    assert results["valid"]["exact_match"]["mean"] > 90
    assert results["valid"]["bleu"]["mean"] > 90
    keras.utils.clear_session()
    model = TupeSeq2SeqLM.from_preset(str(tmp_path / "out" / "seed-0" / "preset"))
    model.compile(sampler=BeamSearch(2))
    written = cases.lines(tmp_path / "out" / "seed-0" / "predictions.tsv")[0][2]
    assert model.generate(cases.lines(valid)[0][0]) == written


@pytest.mark.slow
def test_a_killed_command_goes_on_from_its_checkpoint_to_the_bit(folder, files, tmp_path):
    options = {**files, "save_every": 5, "valid_every": 10, "steps": 40, "seeds": 2}
    expected, _, _ = cases.run(folder / "preset", out=tmp_path / "whole", **options)
    out = tmp_path / "out"
    words = cases.arguments(folder / "preset", out=out, **options)
    process = commands.start("finetune_seq2seq", words, f"{out}.log")
    checkpoint = out / "unfinished" / "seed-1" / "checkpoints" / "step_0000000015.safetensors"
    assert commands.wait_until(checkpoint.exists, process)
    commands.kill(process)
    assert not (out / "results.json").exists()
    words = cases.arguments(folder / "preset", out=out, **{**options, "seeds": 1, "dropout": 0.3})
    assert "seed-0, dropout: 0.1 -> 0.3" in commands.refusal("finetune_seq2seq", *words)
    lost = (out / "seed-0").rename(tmp_path / "seed-0")
    shutil.copytree(out / "unfinished" / "seed-1", out / "unfinished" / "seed-0")
    message = commands.refusal("finetune_seq2seq", *words)
    assert "was begun with other settings. Give it another --out. Received: dropout" in message
    lost.rename(out / "seed-0")
    found, _, told = cases.run(folder / "preset", out=out, **options)
    assert "seed 1 goes on from step " in told
    assert "1 of 2 runs are there already" in told
    for name in ("valid", "test"):
        assert found[name] == expected[name]
    for seed in ("seed-0", "seed-1"):
        for file in ("predictions.tsv", "valid.csv", "preset/model.weights.h5"):
            ours, theirs = (tmp_path / run / seed / file for run in ("out", "whole"))
            assert ours.read_bytes() == theirs.read_bytes(), file
    assert not (out / "unfinished").exists()


@pytest.mark.slow
def test_half_precision_micro_batches_beams_and_the_other_schedule_work(folder, files, tmp_path):
    options = {"precision": "mixed_bfloat16", "micro_batches": 2, "remat": True, "num_beams": 3}
    options |= {"label_smoothing": 0}
    options |= {"schedule": "inverse_sqrt", "warmup_steps": 4, "clip_norm": "none", "seeds": 2}
    results, printed, _ = cases.run(folder / "preset", out=tmp_path / "out", **files, **options)
    assert results["warmup_steps"] == 4
    assert len(results["test"]["chrf"]["values"]) == 2
    assert "| mean " in printed


@pytest.mark.slow
def test_training_that_diverges_ends_with_a_sentence(folder, files, tmp_path):
    out = tmp_path / "out"
    words = cases.arguments(folder / "preset", out=out, learning_rate=1e38, **files)
    message = commands.refusal("finetune_seq2seq", *words)
    assert "The loss or its gradient is not finite at step" in message
    assert message.endswith("with another --out. Received: learning_rate=1e+38")
