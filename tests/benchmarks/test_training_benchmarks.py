"""The benchmarks of training, run as a user runs them, on tiny models."""

import importlib.util
import json
import os
import subprocess
import sys

import pytest

from benchmarks import (
    _child,
    _training_batch,
    _training_gpu_collect,
    _training_gpu_settings,
    _training_matmul,
    _training_processes,
    _training_report,
    _training_rounds,
    _training_settings,
    _training_systems,
    gpu,
    training,
)
from keras_tupe.trainer import step_flops

TINY = ["--sizes", "tiny", "--lengths", "16", "--tokens", "64", "--vocabulary-size", "100"]
needs_jax = pytest.mark.skipif(
    importlib.util.find_spec("jax") is None,
    reason="needs JAX, in an environment of tests/requirements-jax.txt",
)


class Steps:
    """Answers as a process does, and writes down in which order it was asked."""

    def __init__(self, label, walls, calls):
        self.label, self.walls, self.calls = label, iter(walls), calls

    def ask(self, word):
        self.calls.append((self.label, word))
        wall = next(self.walls)
        if wall is None:
            raise _child.ChildError("exit code 1")
        return {"wall": wall, "cpu": 2 * wall}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What a run of one method in float32 writes."""
    folder = tmp_path_factory.mktemp("benchmark") / "results"
    arguments = ["--positions", "tupe_r", "--precisions", "float32", "--rounds", "2", "--no-peers"]
    training.main([*arguments, *TINY, "--out", str(folder)])
    return folder


@pytest.fixture(scope="module")
def record(folder):
    return json.loads((folder / "training.json").read_text(encoding="utf-8"))


@pytest.mark.slow
def test_a_run_writes_its_two_files_and_says_where_its_numbers_come_from(folder, record):
    assert {entry.name for entry in folder.iterdir()} == set(_training_settings.FILES)
    assert record["command"].startswith("python -m benchmarks.training --positions tupe_r ")
    assert set(record["source"]) == {"commit", "dirty"}
    assert record["machine"]["cores"] >= 1
    assert record["facts"]["tupe_r"]["versions"]["backend"] == "tensorflow"
    assert record["problems"] == []


@pytest.mark.slow
def test_a_row_has_time_memory_loss_and_share_of_the_peak(record):
    (row,) = record["rows"]
    assert (row["label"], row["batch_size"], row["length"]) == ("tupe_r", 4, 16)
    assert row["tokens_per_second"] == pytest.approx(1e3 * 64 / row["ms"])
    assert row["baseline_ratio"] == row["baseline_cpu_ratio"] == 1
    assert row["ratio"] is None, "there is no peer"
    assert row["peak_memory_mib"] > 0
    assert 3 < row["loss"] < 6, "a new model guesses among 100 words: log(100) = 4.6"
    assert 0 < row["peak_share"] < 1
    assert row["peak_share"] == row["flops_per_second"] / record["peak_flops"]["float32"]


@pytest.mark.slow
def test_flops_are_those_of_the_trainer_with_the_slots_of_the_batch(record):
    (row,) = record["rows"]
    flops = step_flops(
        num_layers=2,
        hidden_dim=128,
        intermediate_dim=512,
        vocabulary_size=100,
        batch_size=4,
        length=16,
        num_slots=3,
    )
    assert row["flops_per_second"] == pytest.approx(1e3 * flops / row["ms"])


@pytest.mark.slow
def test_waiting_for_real_rows_is_measured(record):
    (row,) = record["input_wait"]
    assert 0 < row["share"] < 1


@pytest.mark.slow
def test_the_page_has_the_table_and_why_peers_are_missing(folder, record):
    page = (folder / "training.md").read_text(encoding="utf-8")
    assert record["command"] in page
    assert "Rows of transformers are left out: --no-peers was given." in page
    assert page.endswith(_training_report.table(record["rows"]) + "\n")


def test_every_system_masks_the_same_tokens_of_the_same_batch():
    token_ids, positions, labels, weights = _training_batch.batch(100, 4, 16)
    assert positions.shape == labels.shape == weights.shape == (4, 3)  # ceil(0.15 * 16)
    assert token_ids.min() >= _training_batch.FIRST_WORD
    for row, places, hidden in zip(token_ids, positions, labels, strict=True):
        assert len(set(places)) == 3
        assert list(row[places]) == list(hidden)


def test_peers_are_what_ratios_are_to_and_the_unfair_head_is_not_one():
    settings = _training_settings.parse([*TINY, "--peers"])
    systems = _training_systems.systems_for(settings, "tiny", "/usr/bin/python")
    kinds = {system.label: system.kind for system in systems}
    assert [label for label, kind in kinds.items() if kind == _training_systems.OURS] == [
        "absolute",
        "tupe_r",
        "qkr_4",
    ]
    peers = [label for label, kind in kinds.items() if kind == _training_systems.PEER]
    assert peers == ["KerasHub", "transformers"]
    assert kinds["transformers, head at all tokens"] == _training_systems.EXTRA


def test_rounds_are_interleaved_and_a_process_that_fails_costs_only_its_rows():
    calls = []
    workers = {
        "a": Steps("a", [9, 1, 1, 1], calls),
        "b": Steps("b", [9, 2, None], calls),
        "c": Steps("c", [9, 4, 1, 8], calls),
    }
    answers, failures = _training_rounds.measure(workers, 3, lambda: None)
    assert "".join(label for label, _ in calls) == "abc" + "cba" + "abc" + "ca"
    assert list(failures) == ["b"]
    assert [answer["wall"] for answer in answers["c"]] == [4, 1, 8]


def test_a_ratio_is_to_the_faster_peer_of_the_same_round():
    walls = {"ours": [2, 2, 2], "x": [1, 4, 4], "y": [4, 1, 2]}
    answers = {
        label: [{"wall": wall, "cpu": 2 * wall} for wall in found] for label, found in walls.items()
    }
    rows = _training_rounds.times(answers, ["x", "y", "did not start"], "ours")
    assert rows["ours"]["ratio"] == 2  # of 2, 2 and 1
    assert rows["ours"]["ratio_quartiles"] == [1.5, 2]
    assert rows["ours"]["cpu_ratio"] == 2
    assert rows["x"]["baseline_ratio"] == 2  # of 0.5, 2 and 2
    alone = _training_rounds.times({"ours": answers["ours"]}, ["x"], "other")
    assert alone["ours"]["ratio"] is None
    assert alone["ours"]["baseline_ratio"] is None


def test_a_process_that_ends_is_named_with_its_last_words():
    with pytest.raises(_child.ChildError, match="exit code 1: .*No module named benchmarks"):
        _training_processes.Worker("benchmarks.nowhere", {})


@pytest.mark.slow
def test_a_process_answers_and_then_tells_why_it_stopped():
    job = {"library": "tensorflow", "precision": "bfloat16", "width": 8}
    worker = _training_processes.Worker("benchmarks._training_matmul", job)
    try:
        assert set(worker.ask("step")) == {"wall", "cpu"}
        worker._process.kill()
        with pytest.raises(_child.ChildError, match="signal 9"):
            worker.ask("step")
    finally:
        worker.close()
    assert _training_matmul.flops(8) == 1024


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--sizes", "tny"], ["--sizes must be of", "nearest is 'tiny'", "Received: 'tny'"]),
        (["--positions", "tupe_q"], ["nearest is 'tupe_", "Received: 'tupe_q'"]),
        (["--precisions", "bfloat61"], ["nearest is 'bfloat16'", "Received: 'bfloat61'"]),
        (["--lengths", "0"], ["--lengths must be an integer > 0", "Received: '0'"]),
        (["--rounds", "none"], ["--rounds must be an integer > 0", "Received: 'none'"]),
        (["--tokens", "-1"], ["--tokens must be an integer > 0", "Received: '-1'"]),
        (["--vocabulary-size", "5"], ["above the 5 special tokens", "Received: '5'"]),
        (["--round", "3"], ["There are no such options", "['--round', '3']"]),
        (["--rounds", "0", "--sizes", ","], ["--rounds", "--sizes must name at least one"]),
    ],
)
def test_mistakes_in_the_command_line_are_all_answered_at_once(
    arguments, expected, capsys, tmp_path
):
    with pytest.raises(SystemExit) as stop:
        training.main([*arguments, "--out", str(tmp_path / "results")])
    assert stop.value.code == 2
    printed = capsys.readouterr().err
    for part in expected:
        assert part in printed
    assert list(tmp_path.iterdir()) == []


def test_utilisation_is_of_the_peak_in_bfloat16_and_of_no_other():
    settings = _training_gpu_settings.parse(TINY)
    facts = {"size": "tiny", "length": 16, "batch_size": 4}
    rows = [
        {**facts, "precision": "bfloat16", "position": "absolute", "ms": 2.0},
        {**facts, "precision": "bfloat16", "position": "tupe_r", "ms": 3.0},
        {**facts, "precision": "float32", "position": "tupe_r", "ms": 4.0},
    ]
    found = {"rows": rows, "peak_flops": 1e12, "product_flops": {"bfloat16": 5e11, "float32": None}}
    for row in rows:
        _training_gpu_collect._add_shares(row, settings, found)
    assert rows[0]["utilisation"] == pytest.approx(rows[0]["tflops"])
    assert rows[0]["product_share"] == pytest.approx(2 * rows[0]["utilisation"])
    assert rows[1]["ratio"] == 1.5
    assert (rows[2]["utilisation"], rows[2]["product_share"]) == (None, None)
    assert rows[2]["ratio"] is None, "the first method has no row in float32"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--peak-flops", "fast"], ["operations per second", "Received: 'fast'"]),
        (["--peak-flops", "-1"], ["operations per second", "Received: '-1'"]),
        (["--sizes", "bsae"], ["nearest is 'base'", "Received: 'bsae'"]),
        (["--steps", "0", "--tokens", "x"], ["--steps must be", "--tokens must be"]),
        (["--product-width", "0"], ["--product-width must be an integer > 0"]),
    ],
)
def test_mistakes_in_the_command_line_of_the_accelerator_are_answered(arguments, expected, capsys):
    with pytest.raises(SystemExit) as stop:
        _training_gpu_settings.parse(arguments)
    assert stop.value.code == 2
    printed = capsys.readouterr().err
    for part in expected:
        assert part in printed


def test_the_accelerator_is_measured_on_jax_alone(monkeypatch, tmp_path):
    monkeypatch.setenv("KERAS_BACKEND", "tensorflow")
    with pytest.raises(SystemExit, match="Run it with KERAS_BACKEND=jax"):
        gpu.main(["--out", str(tmp_path / "results")])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@needs_jax
def test_the_benchmark_of_the_accelerator_runs_on_a_cpu(tmp_path):
    arguments = ["--positions", "absolute,tupe_r", "--precisions", "bfloat16", "--steps", "2"]
    command = [*arguments, *TINY, "--product-width", "64", "--out", str(tmp_path)]
    environment = {**os.environ, "KERAS_BACKEND": "jax"}
    subprocess.run(
        [sys.executable, "-m", "benchmarks.gpu", *command],
        check=True,
        capture_output=True,
        cwd=_child.ROOT,
        env=environment,
    )
    record = json.loads((tmp_path / "gpu.json").read_text(encoding="utf-8"))
    assert record["problems"] == []
    assert [row["position"] for row in record["rows"]] == ["absolute", "tupe_r"]
    for row in record["rows"]:
        assert row["ms"] > 0
        assert 3 < row["last_loss"] < 6
        assert row["product_share"] > 0
    assert (tmp_path / "gpu.md").read_text(encoding="utf-8").count("| tiny |") == 2
