"""The benchmarks of training, run as a user runs them, on tiny models."""

import json

import pytest

from benchmarks.harness.process import ChildError
from benchmarks.training import __main__ as training
from benchmarks.training import batch, products, systems
from benchmarks.training.report import table
from benchmarks.training.settings import Settings
from benchmarks.training.times import measure, times
from keras_tupe.trainer import step_flops

TINY = ["--sizes", "tiny", "--lengths", "16", "--tokens", "64", "--vocabulary-size", "100"]


class Steps:
    """Answers as a process does, and writes down in which order it was asked."""

    def __init__(self, label, walls, calls):
        self.label, self.walls, self.calls = label, iter(walls), calls

    def ask(self, word):
        self.calls.append((self.label, word))
        wall = next(self.walls)
        if wall is None:
            raise ChildError("exit code 1")
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
    assert {entry.name for entry in folder.iterdir()} == {"training.json", "training.md"}
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
    assert page.endswith(table(record["rows"]) + "\n")


def test_every_system_masks_the_same_tokens_of_the_same_batch():
    token_ids, positions, labels, weights = batch.batch(100, 4, 16)
    assert positions.shape == labels.shape == weights.shape == (4, 3)  # ceil(0.15 * 16)
    assert token_ids.min() >= batch.FIRST_WORD
    for row, places, hidden in zip(token_ids, positions, labels, strict=True):
        assert len(set(places)) == 3
        assert list(row[places]) == list(hidden)


def test_peers_are_what_ratios_are_to_and_the_unfair_head_is_not_one():
    found = systems.systems_for(Settings(sizes=("tiny",)), "tiny", "/usr/bin/python")
    kinds = {system.label: system.kind for system in found}
    assert [label for label, kind in kinds.items() if kind == systems.OURS] == [
        "absolute",
        "tupe_r",
        "qkr_4",
    ]
    peers = [label for label, kind in kinds.items() if kind == systems.PEER]
    assert peers == ["KerasHub", "transformers"]
    assert kinds["transformers, head at all tokens"] == systems.EXTRA


def test_rounds_are_interleaved_and_a_process_that_fails_costs_only_its_rows():
    calls = []
    workers = {
        "a": Steps("a", [9, 1, 1, 1], calls),
        "b": Steps("b", [9, 2, None], calls),
        "c": Steps("c", [9, 4, 1, 8], calls),
    }
    answers, failures = measure(workers, 3, lambda: None)
    assert "".join(label for label, _ in calls) == "abc" + "cba" + "abc" + "ca"
    assert list(failures) == ["b"]
    assert [answer["wall"] for answer in answers["c"]] == [4, 1, 8]


def test_a_ratio_is_to_the_faster_peer_of_the_same_round():
    walls = {"ours": [2, 2, 2], "x": [1, 4, 4], "y": [4, 1, 2]}
    answers = {
        label: [{"wall": wall, "cpu": 2 * wall} for wall in found] for label, found in walls.items()
    }
    rows = times(answers, ["x", "y", "did not start"], "ours")
    assert rows["ours"]["ratio"] == 2  # of 2, 2 and 1
    assert rows["ours"]["ratio_quartiles"] == [1.5, 2]
    assert rows["ours"]["cpu_ratio"] == 2
    assert rows["x"]["baseline_ratio"] == 2  # of 0.5, 2 and 2
    alone = times({"ours": answers["ours"]}, ["x"], "other")
    assert alone["ours"]["ratio"] is None
    assert alone["ours"]["baseline_ratio"] is None


def test_a_product_has_two_operations_per_term():
    assert products.flops(8) == 1024
