"""The benchmark of the methods, run as a user runs it, on a tiny encoder."""

import json

import pytest

from benchmarks.methods import __main__ as methods
from benchmarks.methods import cases, times
from benchmarks.methods.collect import measure
from benchmarks.methods.report import table
from benchmarks.methods.settings import Settings
from keras_tupe import TupeBackbone, positions

TINY = ["--size", "tiny", "--tokens", "32", "--rounds", "2", "--lengths", "16"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What a run of two methods writes."""
    folder = tmp_path_factory.mktemp("benchmark") / "results"
    methods.main(["--positions", "absolute,t5", *TINY, "--no-peer", "--out", str(folder)])
    return folder


@pytest.fixture(scope="module")
def record(folder):
    return json.loads((folder / "methods.json").read_text(encoding="utf-8"))


@pytest.mark.slow
def test_nothing_but_the_two_files_is_written(folder):
    assert {entry.name for entry in folder.iterdir()} == {"methods.json", "methods.md"}


@pytest.mark.slow
def test_a_record_says_what_was_measured_where_and_by_which_command(record):
    assert record["command"].startswith("python -m benchmarks.methods --positions absolute,t5 ")
    assert set(record["source"]) == {"commit", "dirty"}
    assert record["machine"]["cores"] >= 1
    assert record["machine"]["cpu"]
    assert {"backend", "keras", "numpy", "python"} <= set(record["environment"]["versions"])
    assert record["settings"]["rounds"] == 2
    assert record["settings"]["hidden_dim"] == 128
    assert record["problems"] == []


@pytest.mark.slow
def test_every_method_has_its_times_memory_and_parameters(record):
    assert [row["label"] for row in record["rows"]] == ["absolute", "t5"]
    for row in record["rows"]:
        assert (row["length"], row["batch_size"]) == (16, 2)
        assert row["peak_memory_mib"] > 0
        for part in times.PARTS:
            assert row[f"{part}_ms"] > 0
            lower, upper = row[f"{part}_ratio_quartiles"]
            assert 0 < lower <= row[f"{part}_ratio"] <= upper
            assert row[f"{part}_cpu_ratio"] > 0


@pytest.mark.slow
def test_the_ratio_of_the_baseline_to_itself_is_one(record):
    baseline = record["rows"][0]
    for part in times.PARTS:
        assert baseline[f"{part}_ratio"] == baseline[f"{part}_cpu_ratio"] == 1
        assert baseline[f"{part}_ratio_quartiles"] == [1, 1]


@pytest.mark.slow
def test_parameters_are_those_of_the_encoder_without_its_pooler(record):
    sizes = {
        name: record["settings"][name]
        for name in ("num_layers", "num_heads", "hidden_dim", "intermediate_dim")
    }
    for row in record["rows"]:
        backbone = TupeBackbone(
            record["settings"]["vocabulary_size"],
            **sizes,
            position=row["position"],
            max_sequence_length=16,
        )
        pooler = sizes["hidden_dim"] * (sizes["hidden_dim"] + 1)
        assert row["parameters"] == backbone.count_params() - pooler


@pytest.mark.slow
def test_the_page_has_the_table_and_why_the_peer_is_missing(folder, record):
    page = (folder / "methods.md").read_text(encoding="utf-8")
    assert record["command"] in page
    assert "Rows of transformers are left out: --no-peer was given." in page
    assert page.endswith(table(record["rows"]) + "\n")
    lines = [line for line in page.splitlines() if line.startswith("|")]
    assert len({len(line) for line in lines}) == 1, "the columns are not aligned"
    assert [line.split("|")[3].strip() for line in lines[2:]] == ["absolute", "t5"]


def test_every_method_is_a_case_and_what_clips_is_one_twice():
    found = cases.cases_for(sorted(positions.METHODS), length=128)
    assert found[0] == cases.Case(cases.BASELINE, {})
    assert {case.position for case in found} == set(positions.METHODS)
    twice = {case.position for case in found if case.options == {"k": 64}}
    assert twice == {name for name, method in positions.METHODS.items() if "k" in method.options}
    assert len(found) == len(positions.METHODS) + len(twice)
    assert len({case.label for case in found}) == len(found)
    for length, rows in [(65, 2), (66, 3)]:  # distances up to 64; up to 65
        assert len(cases.cases_for(["shaw"], length)) == rows


def test_rounds_are_interleaved_and_every_other_one_is_reversed():
    calls = []
    steps = {
        name: (lambda name=name: calls.append(name), lambda name=name: calls.append(name.upper()))
        for name in "ab"
    }
    ticks = []
    rows = times.measure(steps, 3, lambda: ticks.append(1))
    assert "".join(calls) == "aAbB" + "bBaA" + "aAbB" + "bBaA"  # the first is not counted
    assert len(ticks) == 8
    assert rows["a"]["train_ratio"] == 1


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
