"""Every mistake in front of a run ends in a sentence, and nothing is written."""

import json
import os
import shutil

import numpy as np
import pretrain_cases as cases
import pytest
from commands import ended, log_of
from pretrain_cases import failure

from keras_tupe import TupeBackbone, TupeMaskedLM, TupeMaskedLMPreprocessor, TupeTokenizer, data
from keras_tupe.trainer import Checkpoints
from training.command.folder_lock import FolderLock
from training.pretrain import model as pretrain_model
from training.pretrain.settings import Settings

STEP = cases.OPTIONS["steps"]


@pytest.fixture
def out(done, tmp_path):
    """A copy of the last checkpoint of a run, to be damaged, and of nothing else of it."""
    copy = tmp_path / "run"
    cases.checkpoint(copy, STEP).parent.mkdir(parents=True)
    shutil.copy(cases.checkpoint(done[0], STEP), cases.checkpoint(copy, STEP))
    return copy


def edit(out, **changes):
    """Writes the checkpoint again, with other facts."""
    arrays, facts = Checkpoints(out / "checkpoints").read(STEP)
    cases.checkpoint(out, STEP).unlink()
    Checkpoints(out / "checkpoints").save(STEP, arrays, {**facts, **changes})


# === The command line and the rows ===

COMMANDS = {
    "precision": ({"precision": "bfloat16"}, "--precision must be one of ['float32', "),
    "no learning": ({"learning_rate": 0.0}, "--learning-rate must be a number above 0."),
    "unlearning": ({"learning_rate": -1e-3}, "--learning-rate must be a number above 0."),
    "long warm-up": ({"warmup_steps": 25}, "--warmup-steps must be below --steps."),
    "nothing but warm-up": ({"warmup_steps": 24}, "--warmup-steps must be below --steps."),
    "micro-batches": ({"micro_batches": 3}, "--batch-size must be divisible by --micro-batches."),
}


@pytest.mark.parametrize("case", COMMANDS)
def test_numbers_that_cannot_be_are_told(case, rows, tmp_path):
    options, expected = COMMANDS[case]
    message = failure(rows, tmp_path / "run", **options)
    assert expected in message
    assert "Received: " in message
    assert len(message.splitlines()) == 1
    assert not any(tmp_path.iterdir())


def test_rows_that_are_not_there_are_told(rows, tmp_path):
    message = failure(tmp_path / "none", tmp_path / "run")
    assert "--data must be a folder made by `keras-tupe prepare`." in message
    (tmp_path / "empty").mkdir()
    message = failure(tmp_path / "empty", tmp_path / "run")
    assert str(tmp_path / "empty") in message
    half = tmp_path / "half"
    shutil.copytree(rows, half)
    (shard,) = half.glob("train-*.npy")
    shard.unlink()
    assert shard.name in failure(half, tmp_path / "run")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "half"]


def test_rows_longer_than_the_model_are_told(rows, tmp_path):
    options = {"max_sequence_length": 15, "position": "absolute"}
    message = failure(rows, tmp_path / "run", **options)
    assert message.endswith("Received: rows of 16 tokens, max_sequence_length=15")
    assert not any(tmp_path.iterdir())


@pytest.fixture(scope="module")
def preset(rows, tmp_path_factory):
    """A new model of the rows' vocabulary."""
    folder = tmp_path_factory.mktemp("preset") / "preset"
    pieces = (rows / "vocabulary.txt").read_text().splitlines()
    return save_preset(folder, pieces)


def save_preset(folder, pieces, **kwargs):
    backbone = TupeBackbone(len(pieces), 1, 2, 8, 16, position="absolute", max_sequence_length=9)
    preprocessor = TupeMaskedLMPreprocessor(TupeTokenizer(pieces), sequence_length=9)
    TupeMaskedLM(backbone, preprocessor=preprocessor, **kwargs).save_to_preset(str(folder))
    return folder


def test_rows_longer_than_a_preset_are_told(preset, rows, tmp_path):
    message = failure(rows, tmp_path / "run", preset=preset, size=None)
    assert message.endswith("Received: rows of 16 tokens, max_sequence_length=9")
    assert not any(tmp_path.iterdir())


def test_a_preset_is_trained_with_the_dropout_of_the_settings(rows, tmp_path):
    pieces = (rows / "vocabulary.txt").read_text().splitlines()
    folder = save_preset(tmp_path / "preset", pieces, head_activation="gelu_approximate")
    settings = Settings(preset=str(folder), size=None, dropout=0.37)
    model = pretrain_model._from_preset(settings, data.PreparedRows(rows, "train"))
    assert model.backbone.dropout == 0.37
    assert model.head_activation == "gelu_approximate"
    kept = TupeMaskedLM.from_preset(folder, preprocessor=None)
    for weight, old in zip(model.weights, kept.weights, strict=True):
        np.testing.assert_array_equal(weight, old)


@pytest.mark.parametrize("change", ["a piece more", "another order"])
def test_rows_of_another_vocabulary_than_the_preset_are_told(change, rows, tmp_path):
    pieces = (rows / "vocabulary.txt").read_text().splitlines()
    pieces = [*pieces, "more"] if change == "a piece more" else [*pieces[:-2], *pieces[:-3:-1]]
    preset = save_preset(tmp_path / "preset", pieces)
    message = failure(rows, tmp_path / "run", preset=preset, size=None)
    assert message.startswith("pretrain: The rows must have the vocabulary of the preset. ")
    assert message.endswith(
        f"a preset of {len(pieces)} pieces, rows of 160 other pieces; preset={str(preset)!r}"
    )
    assert not (tmp_path / "run").exists()


BROKEN = {
    "no JSON": b"{",
    "nothing": b"",
    "a list": b"[]",
    "no class": b"{}",
    "another model": b'{"module": "keras_hub.src.models.bert.bert_masked_lm", "class_name": "X"}',
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_preset_that_is_none_is_told(case, preset, rows, tmp_path):
    shutil.copytree(preset, tmp_path / "preset")
    (tmp_path / "preset" / "config.json").write_bytes(BROKEN[case])
    message = failure(rows, tmp_path / "run", preset=tmp_path / "preset", size=None)
    assert "--preset" in message
    assert str(tmp_path / "preset") in message
    assert not (tmp_path / "run").exists()


def test_a_preset_without_weights_is_told(preset, rows, tmp_path):
    shutil.copytree(preset, tmp_path / "preset")
    for path in (tmp_path / "preset").glob("*.h5"):
        path.write_bytes(path.read_bytes()[:1000])
    message = failure(rows, tmp_path / "run", preset=tmp_path / "preset", size=None)
    assert str(tmp_path / "preset") in message
    assert not (tmp_path / "run").exists()


# === A folder to go on from ===


def test_a_truncated_checkpoint_is_told(rows, out):
    path = cases.checkpoint(out, STEP)
    path.write_bytes(path.read_bytes()[:-1000])
    message = failure(rows, out)
    assert message.startswith("pretrain: The checkpoint is damaged: ")
    assert message.endswith(
        f"Remove it to go on from the start. Received: {str(cases.checkpoint(out, STEP))!r}"
    )


def test_a_flipped_bit_in_a_checkpoint_is_told(rows, out):
    path = cases.checkpoint(out, STEP)
    content = bytearray(path.read_bytes())
    table = cases.state(out, STEP)["model/token_embedding/embeddings"]
    content[content.index(table.tobytes()) + 1001] ^= 4
    path.write_bytes(content)
    assert failure(rows, out).startswith("pretrain: The checkpoint is damaged: ")


@pytest.mark.parametrize("facts", [{"settings": None}, {"settings": "x"}, {"data": 3}])
def test_a_checkpoint_of_other_facts_is_refused(facts, rows, out):
    edit(out, **facts)
    assert failure(rows, out).startswith("pretrain: The ")


def test_another_model_is_told_by_its_first_difference(rows, out):
    state = cases.state(out, STEP)
    record = cases.facts(out, STEP)
    name = next(name for name in state if name.endswith("mlm_head_dense_bias_momentum"))
    for change, expected in (
        ({name: state[name][:-1]}, f"expected {name} of shape (128,) and type float32. "),
        ({"more": np.zeros(3)}, "expected no more. Received: one"),
    ):
        cases.checkpoint(out, STEP).unlink()
        arrays = {key: x for key, x in {**state, **change}.items() if x is not None}
        facts = {key: record[key] for key in ("settings", "data")}
        Checkpoints(out / "checkpoints").save(STEP, arrays, facts)
        message = failure(rows, out)
        assert expected in message
        assert "The first difference: " in message
        assert message.endswith(f", in {cases.checkpoint(out, STEP)}")


def test_a_run_of_another_model_is_told_before_one_is_made(rows, out):
    sizes = {"size": "mini", "position": "absolute", "normalize_first": True}
    message = failure(rows, out, **sizes)
    assert "normalize_first: False -> True; position: 'tupe_r' -> 'absolute'" in message
    assert "size: 'tiny' -> 'mini'" in message
    message = failure(rows, out, **sizes, allow_change=["size"])
    assert "--allow-change may name" in message


def test_other_rows_are_refused_and_may_be_allowed(rows, out, tmp_path):
    more = ["--vocabulary", rows / "vocabulary.txt"]
    other = cases.make_rows(tmp_path / "other", number=43, more=more)
    message = failure(other, out)
    assert "Received: data: {'rows_hash': '" in message
    _, told = cases.run(other, out, allow_change=["data"])
    assert f"goes on from step {STEP}" in told


def test_a_folder_in_which_another_process_works_is_left_alone(rows, out):
    with FolderLock(out):
        message = failure(rows, out)
    assert message.startswith("pretrain: Another process works in --out: wait for its end, or ")
    assert f"Received: {str(out)!r}, process {os.getpid()} on host " in message


def test_a_folder_of_another_program_is_left_alone(rows, tmp_path):
    for out in (rows.parent, tmp_path):
        (out / "mine.txt").touch()
        message = failure(rows, out)
        assert message.startswith("pretrain: --out must be a new folder, or one that training.pre")
        assert f"Received: {str(out)!r}, which holds " in message


def reversed_rows(rows, folder):
    """The same rows in the opposite order, as another runner might write them."""
    folder.mkdir()
    record = data.read_sealed_json(rows / "preparation.json")
    for part in record["splits"]:
        prepared = data.PreparedRows(rows, part)
        token_ids = prepared[np.arange(len(prepared))[::-1]]
        data.write_shard(folder, part, 0, token_ids, prepared.vocabulary.size)
    shutil.copy(rows / "vocabulary.txt", folder)
    data.seal(folder, {name: record[name] for name in record if name not in ("format", "sha256")})
    return folder


def test_the_same_rows_in_another_order_are_refused(rows, out, tmp_path):
    other = reversed_rows(rows, tmp_path / "other")
    assert "'rows_hash': '" in failure(other, out)


def test_rows_that_moved_are_the_same_rows(rows, out, tmp_path):
    shutil.copytree(rows, tmp_path / "moved")
    _, told = cases.run(tmp_path / "moved", out)
    assert f"goes on from step {STEP}" in told


def test_a_log_of_something_else_is_left_alone(rows, out):
    (out / "log.csv").write_text("date,weight\n1999,3\n")
    message = failure(rows, out)
    assert "It is of another program or version: move it away." in message
    assert (out / "log.csv").read_text() == "date,weight\n1999,3\n"


# === Several workers ===

CONFIGS = {
    "no JSON": ("{worker: [a:1, b:2]}", "TF_CONFIG must be JSON: "),
    "twice": (
        json.dumps({"cluster": {"worker": ["a:1", "a:1"]}, "task": {"type": "worker", "index": 0}}),
        "TF_CONFIG must be a list in which each worker is there once, and a:1 is not.",
    ),
}


@pytest.mark.parametrize("case", CONFIGS)
@pytest.mark.parametrize("strategy", ["auto", "multiworker"])
def test_a_wrong_tf_config_is_told(case, strategy, rows, tmp_path, monkeypatch):
    text, expected = CONFIGS[case]
    monkeypatch.setenv("TF_CONFIG", text)
    message = failure(rows, tmp_path / "run", strategy=strategy)
    assert message.startswith(f"pretrain: {expected}")
    assert not any(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("index", [0, 1])
def test_a_worker_alone_ends_with_a_sentence_within_two_minutes(index, rows, tmp_path):
    out = tmp_path / "run"
    environment = cases.clusters()[index]
    process = cases.start(rows, out, environment=environment)
    assert ended(process, 150) == 1
    told = log_of(out)
    assert "pretrain: Not all workers answered within 110 seconds." in told
    assert f"Received: worker {index} (" in told
    assert "Traceback" not in told
    assert not out.exists()
