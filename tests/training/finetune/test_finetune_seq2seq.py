"""Pairs of texts: reading, tokens, the plan, scores, what is written, and going on within a run."""

import math
import shutil

import commands
import keras
import numpy as np
import pytest
import sacrebleu
import seq2seq_cases as cases

from keras_tupe.data import Padded
from keras_tupe.models import BeamSearch, TupeSeq2SeqLM
from training.command.settings import parse
from training.finetune.seq2seq import (
    Pairs,
    Start,
    Writer,
    plan_of,
    read_pairs,
    score,
    tokenized,
    tokens_of,
)
from training.finetune.tasks.seq2seq import Settings


def settings(**options):
    return Settings(**{"length": 12, "target_length": 12, **options})


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


# === Runs ===


def test_a_preset_writes_what_its_predictions_say_and_these_are_scored(folder, files, tmp_path):
    out = tmp_path / "out"
    results, printed, told = cases.run(folder / "preset", out=out, **files)
    for name, file in (("valid", "predictions.tsv"), ("test", "predictions-test.tsv")):
        found = cases.lines(out / "seed-0" / file)
        assert [row[:2] for row in found] == cases.lines(files[name])
        exact = np.mean([100 * (target == written) for _, target, written in found])
        assert results[name]["exact_match"] == {"values": [exact], "mean": exact}
        assert 0 <= results[name]["bleu"]["mean"] <= 100
        assert results["pairs"][name] == {"used": len(found), "cut": {"source": 0, "target": 0}}
    assert results["steps"] == 12
    assert "version:2" in printed
    assert "step 12: held-out loss" in told
    assert f"seed-0: valid exact match {results['valid']['exact_match']['mean']:.4g}, " in told
    found = cases.lines(out / "seed-0" / "predictions.tsv")
    model = TupeSeq2SeqLM.from_preset(str(out / "seed-0" / "preset"))
    assert model.generate([source for source, _, _ in found]) == [row[2] for row in found]


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
    process = commands.start("finetune seq2seq", words, f"{out}.log")
    work = out / ".work" / "seed-1"
    checkpoint = work / "checkpoints" / "step_0000000015.safetensors"
    assert commands.wait_until(checkpoint.exists, process)
    commands.kill(process)
    words = cases.arguments(folder / "preset", out=out, **{**options, "seeds": 1, "dropout": 0.3})
    assert "seed-0, dropout: 0.1 -> 0.3" in commands.refusal("finetune seq2seq", *words)
    lost = (out / "seed-0").rename(tmp_path / "seed-0")
    shutil.copytree(work, work.with_name("seed-0"))
    message = commands.refusal("finetune seq2seq", *words)
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


def test_a_checkpoint_of_another_preset_is_not_gone_on_from(folder, files, tmp_path, monkeypatch):
    def texts(self, sources, progress):
        raise KeyboardInterrupt  # when all is trained, and the checkpoint is still there

    given = {**files, "out": tmp_path / "out", "steps": 1, "valid_every": 1, "warmup": 0}
    with monkeypatch.context() as stopped:
        stopped.setattr(Writer, "texts", texts)
        words = cases.arguments(folder / "preset", **given)
        assert commands.run("finetune seq2seq", *words).code == 130
    other = cases.save_preset(tmp_path / "other", initializer_range=0.1)
    message = commands.refusal("finetune seq2seq", *cases.arguments(other, **given))
    assert "was begun with other settings. Give it another --out. Received: preset: " in message


@pytest.mark.slow
def test_half_precision_micro_batches_beams_and_the_other_schedule_work(folder, files, tmp_path):
    options = {"precision": "mixed_bfloat16", "micro_batches": 2, "remat": True, "num_beams": 3}
    options |= {"label_smoothing": 0, "limit": 30}
    options |= {"schedule": "inverse_sqrt", "warmup": 4, "clip_norm": "none", "seeds": 2}
    results, printed, _ = cases.run(folder / "preset", out=tmp_path / "out", **files, **options)
    assert results["warmup_steps"] == 4
    assert results["pairs"]["train"]["used"] == 30
    assert len(results["test"]["chrf"]["values"]) == 2
    assert "| mean " in printed


# === Files ===


def refused(folder, tmp_path, content, **options):
    """Trains in vain on a file of these bytes; returns the sentences."""
    bad = tmp_path / "bad.tsv"
    bad.write_bytes(content)
    files = {"train": bad, "valid": folder / "valid.tsv"}
    return cases.failure(folder / "preset", out=tmp_path / "out", **files, **options)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"1\t1\n2 3\n", "line 2: a line must have two columns, source and target"),
        (b"1\t1\n2\t3\t4\n", "Received: 3 columns, '2\\t3\\t4'"),
        (b"1\t1\n\n2\t2\n", "line 2: a line must have two columns"),
        (b"\t1\n", "line 1: the source must not be empty"),
        (b"1\t1\n1\t  \r\n", "line 2: the target must not be empty"),
        (b"1\t1\n\xff\t1\n", "line 2: the text must be UTF-8"),
        (b"", "which is empty"),
        (b"1\t1\n1\t\xe2\x80\x8b\n", "line 2: the target must have a word that the vocabulary can"),
    ],
)
def test_lines_that_are_no_pairs_are_told_with_file_and_line(folder, tmp_path, content, sentence):
    message = refused(folder, tmp_path, content)
    assert sentence in message
    assert "--train: " in message
    assert "bad.tsv" in message


def test_the_first_mistakes_of_every_file_are_told_at_once(folder, tmp_path):
    bad = tmp_path / "both.tsv"
    bad.write_text("1\n" * 9)
    files = {"train": bad, "valid": bad, "out": tmp_path / "out"}
    told = cases.failure(folder / "preset", **files).splitlines()
    assert len(told) == 12
    assert told[5] == f"finetune seq2seq: --train: {bad}: 4 more such lines"
    assert told[6].startswith(f"finetune seq2seq: --valid: {bad}, line 1: ")


def test_texts_that_are_too_long_are_told_with_their_line_and_tokens(folder, tmp_path):
    row = " ".join("1" * 11)  # one more than a source of 12 tokens has room for
    message = refused(folder, tmp_path, f"1\t1\n{row}\t1\n".encode())
    assert "line 2: the source must have at most 12 tokens, special ones included" in message
    assert message.endswith("give a larger --length, or --cut-long. Received: 13 tokens")
    message = refused(folder, tmp_path, f"1\t{row} 1\n".encode())
    assert "line 1: the target must have at most 12 tokens" in message
    assert message.endswith("give a larger --target-length, or --cut-long. Received: 13 tokens")
    pairs = Pairs("file", ["1"] * 8, ["1"] * 7 + [f"{row} 1"])
    part = pairs.part(4)
    assert [part.line(n) for n in range(4)] == [f"file, line {n}" for n in part.lines]


def test_rows_longer_than_the_position_tables_of_a_preset_are_refused(folder, files, tmp_path):
    preset = cases.save_preset(tmp_path / "preset", position="absolute")
    message = cases.failure(preset, out=tmp_path / "out", length=13, **files)
    assert "must not be above the rows of the preset's position tables, 12." in message


def test_files_are_read_to_the_letter(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_bytes("\ufeffa b\tc\r\n \u2028d\te \u00e4".encode())
    pairs = read_pairs(path)
    assert (pairs.sources, pairs.targets) == (["a b", " \u2028d"], ["c", "e \u00e4"])
    assert pairs.digest() != Pairs("", ["a b"], ["c"]).digest()


# === Tokens, plan, scores ===


@pytest.mark.parametrize("starts_with_end", [False, True])
def test_rows_are_those_of_the_preprocessor(starts_with_end):
    text = cases.model().preprocessor
    text.decoder_starts_with_end = starts_with_end
    sources = ["1 2 3", "4", "5 6", " ".join("7" * 10)]
    targets = ["3 2 1", "4 4 . 4", " ".join("9" * (11 - starts_with_end)), "8"]
    tokens = tokens_of(Pairs("pairs.tsv", sources, targets), text, cut_long=False)
    rows = Padded.of_pairs(tokens.sources, tokens.targets, pad_id=0, batch_size=4, seed=0)
    inputs, labels, weights = rows.evaluation_batch(0)
    order = rows.evaluation_rows(0)
    x, y, w = text({"encoder_text": sources, "decoder_text": targets})
    np.testing.assert_array_equal(weights, w.numpy()[order])
    # what has no weight stands behind all that has: the preprocessor lets the decoder read the end
    for name, expected in {**x, "labels": y}.items():
        counts = weights > 0 if name[:7] == "decoder" else np.ones((4, 12), bool)
        found = {**inputs, "labels": labels}[name]
        np.testing.assert_array_equal(found[counts], expected.numpy()[order][counts], name)


def test_long_texts_are_cut_as_the_preprocessor_cuts_and_counted():
    text = cases.model().preprocessor
    sources, targets = ["1 " * 30, "2"], ["2", "1 " * 30]
    tokens = tokens_of(Pairs("pairs.tsv", sources, targets), text, cut_long=True)
    assert tokens.num_cut == {"source": 1, "target": 1}
    x, y, _ = text({"encoder_text": sources, "decoder_text": targets})
    assert tokens.sources[0].tolist() == x["encoder_token_ids"].numpy()[0].tolist()
    assert tokens.targets[1][1:].tolist() == y.numpy()[1].tolist()


def test_a_vocabulary_of_both_columns_keeps_words_whole():
    pairs = Pairs("", ["der Hund bellt", "Hund"] * 3, ["the dog barks", "dog"] * 3)
    start = Start(settings(vocabulary_size=400, position="rope"), pairs)
    words = start.preprocessor.tokenizer.get_vocabulary()
    assert {"der", "Hund", "bellt", "the", "dog", "barks"} <= set(words)
    assert "hund" not in words
    models = [start.model(seed=1) for _ in range(2)]
    assert models[0].backbone.vocabulary_size == len(words)
    for ours, theirs in zip(*(model.get_weights() for model in models), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    ("options", "steps", "warmup"),
    [
        ({}, 70, 4),
        ({"epochs": 3}, 21, 1),
        ({"steps": 50, "warmup": 0}, 50, 0),
        ({"steps": 50, "warmup": 7.0}, 50, 7),
    ],
)
def test_steps_follow_epochs_and_the_warmup_follows_steps(options, steps, warmup):
    plan = plan_of(settings(**options), 7)
    assert (plan.steps, plan.warmup_steps) == (steps, warmup)
    assert steps / 26 < plan.valid_every <= steps
    assert float(plan.schedule(steps)) == 0


def test_transformer_base_has_the_learning_rates_of_its_equation(tmp_path):
    files = [f"--{name}={tmp_path / 'pairs.tsv'}" for name in ("train", "valid")]
    cases.write_pairs(tmp_path / "pairs.tsv", 1)
    words = ["--config", "transformer-base", *files, "--out", str(tmp_path / "out")]
    named = parse(Settings, words)
    schedule = plan_of(named, 1000).schedule
    for step in (1, 4000, 100_000):
        expected = 512**-0.5 * min(step**-0.5, step * 4000**-1.5)
        assert math.isclose(float(schedule(step - 1)), expected, rel_tol=1e-4)
    assert (named.steps, named.clip_norm, named.num_beams) == (100_000, None, 4)
    by_epochs = parse(Settings, [*words, "--epochs", "3"])
    assert (by_epochs.epochs, by_epochs.steps) == (3, None)
    written = settings(num_beams=3, length_penalty=0.5)  # by a model that was trained the same
    assert written.training_identity() == settings().training_identity()


def test_scores_are_those_of_sacrebleu_and_exact_match_does_not_see_spaces():
    targets = ["The cat sat, then ran.", "It did not see the dog.", "Yes, it is so!"]
    written = ["The cat sat , then ran .", "it did not see the dog .", "Yes , it is so !"]
    found = score(targets, written, lowercase=False)
    assert math.isclose(found["exact_match"], 200 / 3)
    assert found["bleu"] == sacrebleu.corpus_bleu(written, [targets], force=True).score
    assert found["chrf"] == sacrebleu.corpus_chrf(written, [targets]).score
    assert "tok:13a" in found["signatures"]["bleu"]
    low, high = found["exact_match_interval"]
    assert 0 < low < found["exact_match"] < high < 100
    assert score(targets, written, lowercase=True)["exact_match"] == 100
    assert score(targets, targets, lowercase=False)["bleu"] > 99.99
    assert score(targets, ["[UNK]"] * 3, lowercase=True)["exact_match"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("num_beams", [1, 3])
def test_predictions_are_those_of_the_model_in_the_order_of_the_sources(num_beams):
    whole, model = cases.model(), cases.model()
    sources = [" ".join("123456789"[:n]) for n in (8, 1, 5, 2, 9, 3, 4)]
    whole.compile(sampler="greedy" if num_beams == 1 else BeamSearch(3, 0.6))
    expected = [" ".join(text.split()) for text in whole.generate(sources)]
    assert len(set(expected)) > 1
    alone = TupeSeq2SeqLM(model.backbone)
    tokens = tokenized(whole.preprocessor.tokenizer.op, sources, False)
    done = []
    given = settings(num_beams=num_beams, length_penalty=0.6, batch_size=3)
    found = Writer(alone, whole.preprocessor, given).texts(tokens, done.append)
    assert found == expected
    assert done == [3, 6, 7]
