"""The benchmark of the methods, run as a user runs it, on a tiny encoder."""

import json

import pytest

from benchmarks.methods import __main__ as methods
from benchmarks.methods import times
from benchmarks.methods.collect import measure
from benchmarks.methods.report import table
from benchmarks.methods.settings import Settings
from keras_tupe import TupeBackbone

TINY = ["--size", "tiny", "--tokens", "32", "--rounds", "2", "--lengths", "16"]


@pytest.mark.slow
def test_a_run_of_two_methods_writes_its_numbers_and_its_page(tmp_path):
    words = ["--positions", "absolute,t5", *TINY, "--no-peer", "--out", str(tmp_path / "out")]
    methods.main(words)
    assert {entry.name for entry in (tmp_path / "out").iterdir()} == {"methods.json", "methods.md"}
    record = json.loads((tmp_path / "out" / "methods.json").read_text(encoding="utf-8"))
    settings = record["settings"]
    assert record["command"].startswith("python -m benchmarks.methods --positions absolute,t5 ")
    assert record["problems"] == []
    assert [row["label"] for row in record["rows"]] == ["absolute", "t5"]
    names = ("vocabulary_size", "num_layers", "num_heads", "hidden_dim", "intermediate_dim")
    for row in record["rows"]:
        assert (row["length"], row["batch_size"]) == (16, 2)
        assert row["peak_memory_mib"] > 0
        sizes = {name: settings[name] for name in names}
        model = TupeBackbone(**sizes, position=row["position"], max_sequence_length=16)
        pooler = settings["hidden_dim"] * (settings["hidden_dim"] + 1)
        assert row["parameters"] == model.count_params() - pooler
        for part in times.PARTS:
            lower, upper = row[f"{part}_ratio_quartiles"]
            assert 0 < lower <= row[f"{part}_ratio"] <= upper
            assert row["label"] == "t5" or (lower, upper) == (1, 1), "the baseline to itself"
    page = (tmp_path / "out" / "methods.md").read_text(encoding="utf-8")
    assert "Rows of transformers are left out: --no-peer was given." in page
    assert page.endswith(table(record["rows"]) + "\n")


def test_the_first_round_does_not_count(monkeypatch):
    class Clock:
        now = 0.0

        def perf_counter(self):
            return self.now

        process_time = perf_counter

    clock, seconds = Clock(), iter([9.0, 9.0, 2.0, 4.0])

    def step():
        clock.now += next(seconds)

    monkeypatch.setattr(times, "time", clock)
    row = times.measure({"a": (step, step)}, 1, lambda: None)["a"]
    assert (row["train_ms"], row["inference_ms"]) == (2000, 4000)


def test_a_ratio_is_the_median_of_the_ratios_of_the_rounds():
    wall = {("a", "train"): [1.0, 2.0, 10.0], ("b", "train"): [3.0, 2.0, 20.0]}
    wall.update({(name, "inference"): wall[name, "train"] for name in "ab"})
    row = times.row("b", "a", wall, wall)
    assert row["train_ratio"] == 2  # of 3, 1 and 2; the ratio of the medians is 1.5
    assert row["train_ratio_quartiles"] == [1.5, 2.5]
    assert row["train_ms"] == 3000


def test_a_measurement_that_fails_costs_its_cells_and_not_the_run():
    settings = Settings(rounds=2, peer=False)
    found, job = {"problems": []}, {"length": 16, "batch_size": 2}
    where = ("keras_tupe", "benchmarks.nowhere", ["a"], "cases", [{}])
    rows, facts = measure(found, settings, job, *where)
    assert facts == {}
    assert [problem.split(":")[0] for problem in found["problems"]] == [
        "keras_tupe, n = 16, times",
        "keras_tupe, n = 16, memory of a",
    ]
    cells = [cell.strip() for cell in table(rows).splitlines()[2].strip("|").split("|")]
    assert cells == ["16", "2", "a", *["-"] * 8]
