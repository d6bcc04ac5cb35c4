"""The benchmarks of training, run as a user runs them, on tiny models."""

import dataclasses
import json

import pytest

from benchmarks.harness.process import ChildError
from benchmarks.training import __main__ as training
from benchmarks.training import batch, collect, products, systems
from benchmarks.training.report import table
from benchmarks.training.settings import Settings
from benchmarks.training.times import measure, times
from keras_tupe.trainer import step_flops

TINY = ["--sizes", "tiny", "--shapes", "4x16", "--vocabulary-size", "100"]
SIZES = ("mini", "base")
EVERYWHERE = {"tensorflow": "/a/python", "jax": "/b/python", "torch": "/c/python"}


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
    arguments = [
        "--positions",
        "tupe_r",
        "--precisions",
        "float32",
        "--rounds",
        "2",
        "--peers",
        "none",
    ]
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
    assert row["ratio"] is row["hub_ratio"] is row["hub_memory_ratio"] is None, "there is no peer"
    assert row["cpu_ms"] > 0
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
    assert "Left out: peers: --peers none was given." in page
    assert page.endswith(table(record["rows"]) + "\n")


def test_every_system_masks_the_same_tokens_of_the_same_batch():
    token_ids, positions, labels, weights = batch.batch(100, 4, 16)
    assert positions.shape == labels.shape == weights.shape == (4, 3)  # ceil(0.15 * 16)
    assert token_ids.min() >= batch.FIRST_WORD
    for row, places, hidden in zip(token_ids, positions, labels, strict=True):
        assert len(set(places)) == 3
        assert list(row[places]) == list(hidden)


def test_peers_are_what_ratios_are_to_and_the_unfair_head_is_not_one():
    found = systems.systems_for(Settings(), "tiny", EVERYWHERE)
    kinds = {system.label: system.kind for system in found}
    assert [label for label, kind in kinds.items() if kind == systems.OURS] == [
        "absolute",
        "tupe_r",
        "qkr_4",
    ]
    peers = [label for label, kind in kinds.items() if kind == systems.PEER]
    assert peers == [
        "KerasHub",
        "transformers",
        "KerasHub, XLA",
        "transformers, torch.compile",
        "KerasHub, JAX",
    ]
    assert kinds["transformers, head at all tokens"] == systems.EXTRA


def test_each_peer_runs_where_its_library_is_and_in_its_way():
    found = {one.label: one for one in systems.systems_for(Settings(), "tiny", EVERYWHERE)}
    assert {label: (one.python, one.backend) for label, one in found.items() if "Hub" in label} == {
        "KerasHub": ("/a/python", "tensorflow"),
        "KerasHub, XLA": ("/a/python", "tensorflow"),
        "KerasHub, JAX": ("/b/python", "jax"),
    }
    assert [found[label].job["jit_compile"] for label in ("KerasHub", "KerasHub, XLA")] == [0, 1]
    compiled = {label: one.job["compile"] for label, one in found.items() if "compile" in one.job}
    assert compiled == {
        "transformers": False,
        "transformers, head at all tokens": False,
        "transformers, torch.compile": True,
    }


def test_a_library_that_is_not_there_costs_its_rows_alone():
    found = systems.systems_for(Settings(), "base", {"tensorflow": "/a/python"})
    assert [system.label for system in found] == [
        *["absolute", "tupe_r", "KerasHub", "KerasHub, XLA", "product by tensorflow"]
    ]


def test_large_sizes_are_measured_without_extras():
    names = [{s.label for s in systems.systems_for(Settings(), size, EVERYWHERE)} for size in SIZES]
    assert names[0] - names[1] == {"qkr_4", "transformers, head at all tokens"}


def test_other_ways_to_compile_ours_are_extras_beside_the_first():
    settings = Settings(positions=("tupe_r",), xla=("auto", "on"), peers=("none",))
    found = systems.systems_for(settings, "mini", EVERYWHERE)
    ours = [(one.label, one.kind, one.job["xla"]) for one in found if "xla" in one.job]
    assert ours == [
        ("tupe_r", systems.OURS, "auto"),
        ("tupe_r, xla on", systems.EXTRA, "on"),
    ]


def test_every_size_has_its_batches_rounds_and_methods():
    settings = Settings()
    assert [settings.shapes_of(size) for size in settings.sizes] == [
        [(32, 32), (64, 32)],
        [(16, 128), (4, 512)],
        [(8, 128), (2, 512)],
    ]
    rounds = {size: settings.rounds_of(size) for size in settings.sizes}
    assert rounds["tiny"] == rounds["mini"] > rounds["base"] > 1
    assert settings.positions_of("base") == settings.positions_of("mini")[:2]
    given = Settings(shapes=("2x7",), rounds=3)
    assert given.shapes_of("base") == given.shapes_of("tiny") == [(2, 7)]
    assert given.rounds_of("base") == 3


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


def test_a_product_has_two_operations_per_term():
    assert products.flops(8) == 1024
