"""The benchmarks of training, run as a user runs them, on tiny models."""

import dataclasses
import json

import pytest

from benchmarks.harness.process import ChildError
from benchmarks.training import __main__ as training
from benchmarks.training import batch, collect, systems
from benchmarks.training.report import table
from benchmarks.training.settings import Settings
from benchmarks.training.times import measure, times
from keras_tupe.trainer import step_flops

TINY = ["--sizes", "tiny", "--shapes", "4x16", "--vocabulary-size", "100"]


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


@pytest.mark.slow
def test_a_run_of_one_method_writes_its_numbers_and_its_page(tmp_path):
    words = ["--positions", "tupe_r", "--precisions", "float32", "--rounds", "2", "--peers", "none"]
    training.main([*words, *TINY, "--out", str(tmp_path / "out")])
    record = json.loads((tmp_path / "out" / "training.json").read_text(encoding="utf-8"))
    assert record["command"].startswith("python -m benchmarks.training --positions tupe_r ")
    assert record["problems"] == []
    (row,), (wait,) = record["rows"], record["input_wait"]
    assert (row["label"], row["batch_size"], row["length"]) == ("tupe_r", 4, 16)
    assert row["tokens_per_second"] == pytest.approx(1e3 * 64 / row["ms"])
    assert row["baseline_ratio"] == row["baseline_cpu_ratio"] == 1
    assert row["ratio"] is row["hub_ratio"] is row["hub_memory_ratio"] is None, "there is no peer"
    assert row["peak_memory_mib"] > 0
    assert 3 < row["loss"] < 6, "a new model guesses among 100 words: log(100) = 4.6"
    assert 0 < row["peak_share"] == row["flops_per_second"] / record["peak_flops"]["float32"] < 1
    sizes = {"num_layers": 2, "hidden_dim": 128, "intermediate_dim": 512, "vocabulary_size": 100}
    flops = step_flops(**sizes, batch_size=4, length=16, num_slots=3)
    assert row["flops_per_second"] == pytest.approx(1e3 * flops / row["ms"])
    assert 0 < wait["share"] < 1
    page = (tmp_path / "out" / "training.md").read_text(encoding="utf-8")
    assert "Left out: peers: --peers none was given." in page
    assert page.endswith(table(record["rows"]) + "\n")


def test_every_system_masks_the_same_tokens_of_the_same_batch():
    token_ids, positions, labels, weights = batch.batch(100, 4, 16)
    assert positions.shape == labels.shape == weights.shape == (4, 3)  # ceil(0.15 * 16)
    assert token_ids.min() >= batch.FIRST_WORD
    for row, places, hidden in zip(token_ids, positions, labels, strict=True):
        assert len(set(places)) == 3
        assert list(row[places]) == list(hidden)


def test_a_system_without_memory_left_is_left_out_and_the_others_run(monkeypatch):
    class Process:
        def __init__(self, label):
            self.label, self.facts = label, {}

        def ask(self, word):
            return {"mib": 1.0} if word == "memory" else {"wall": 1, "cpu": 1, "loss": 5, "wait": 0}

        def resident(self):
            return 2**30

        def close(self):
            pass

    left = iter([2**40, 1.4 * 2**30, 1.2 * 2**30, 2**40, 2**40])
    monkeypatch.setattr(collect, "available", lambda: next(left))
    monkeypatch.setattr(systems.System, "start", lambda system, job: Process(system.label))
    settings = Settings(
        sizes=("tiny",), precisions=("float32",), positions=("tupe_r",), shapes=("4x16",), rounds=1
    )
    settings = dataclasses.replace(settings, peers=("keras_hub", "keras_hub_xla"))
    found = collect.collect(settings)
    assert [row["label"] for row in found["rows"]] == ["tupe_r", "KerasHub"]
    assert found["rows"][0]["hub_memory_ratio"] == 1
    assert found["left_out"] == [
        "KerasHub, XLA (tiny, float32, 16): it needs about 1.3 GiB of memory, and 1.2 are free"
    ]
    assert found["problems"] == []


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


def test_a_ratio_is_to_the_fastest_peer_of_the_same_round():
    walls = {"ours": [2, 2, 2], "x": [1, 4, 4], "y": [4, 1, 2]}
    answers = {
        label: [{"wall": wall, "cpu": 2 * wall} for wall in found] for label, found in walls.items()
    }
    references = {"": ["x", "y", "did not start"], "hub_": ["y"], "baseline_": ["ours"]}
    rows = times(answers, references)
    assert (rows["ours"]["ms"], rows["ours"]["cpu_ms"]) == (2000, 4000)
    assert rows["ours"]["ratio"] == 2  # of 2, 2 and 1
    assert rows["ours"]["ratio_quartiles"] == [1.5, 2]
    assert rows["ours"]["cpu_ratio"] == 2
    assert rows["ours"]["hub_ratio"] == rows["ours"]["hub_cpu_ratio"] == 1  # of 0.5, 2 and 1
    assert rows["x"]["baseline_ratio"] == 2  # of 0.5, 2 and 2
    alone = times({"ours": answers["ours"]}, {"": ["x"], "baseline_": ["other"]})
    assert alone["ours"]["ratio"] is None
    assert alone["ours"]["baseline_ratio"] is None
