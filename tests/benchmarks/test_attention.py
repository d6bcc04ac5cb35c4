"""The benchmark of attention alone, on tiny layers."""

import json

import numpy as np
import pytest

from benchmarks.attention import __main__ as attention
from benchmarks.attention import collect, layer
from benchmarks.attention.report import definitions, markdown
from benchmarks.attention.settings import Settings
from benchmarks.harness.process import ChildError

JOB = {"heads": 2, "head_dim": 4, "length": 7, "precision": "float32"}


def row(label, mib=1.0, **more):
    """A row of what was measured, before its ratios."""
    return {"label": label, "heads": 4, "length": 512, "peak_memory_mib": mib, **more}


def seconds(*walls):
    """Seconds of rounds, processor times twice the wall times."""
    return [{"wall": wall, "cpu": 2 * wall} for wall in walls]


@pytest.mark.parametrize("name", ["sinusoidal", "tupe_r", "rope"])
def test_the_layer_is_what_a_block_of_an_encoder_calls(name):
    """With the bias (`tupe_r`), the shared positions (`rope`), and without what is embedded."""
    model = layer.attention_model(name, {}, JOB)
    hidden = np.random.default_rng(0).standard_normal((3, 7, 8)).astype("float32")
    mask = np.ones((3, 7), "int32")
    mask[1, 5:] = 0
    arguments = {"padding_mask": mask}
    for one, argument in (("position_bias",) * 2, ("shared_positions",) * 2):
        if one in [found.name for found in model.layers]:
            arguments[argument] = model.get_layer(one)(hidden)
    assert len(arguments) == (1 if name == "sinusoidal" else 2)
    expected = model.get_layer("attention")(hidden, **arguments)
    found = model({"token_ids": hidden, "padding_mask": mask})
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)


def test_a_step_drops_and_gives_every_weight_and_the_hidden_states_a_gradient():
    model = layer.attention_model("tupe_r", {}, JOB)
    first, second = (layer.step_of(model, 3, 7)() for _ in range(2))
    assert first.shape == (3, 7, 8)
    assert np.isfinite(first).all()
    assert np.abs(first - second).max() > 0, "dropout draws anew"
    paths = [weight.path for weight in model.trainable_weights]
    assert {path.split("/")[0] for path in paths} == {"position_bias", "block_0"}
    assert all("/attention/" in path for path in paths if path.startswith("block_0"))


def test_a_core_is_a_layer_without_projections_in_the_same_round():
    rows = [
        row("absolute", seconds=seconds(3, 5)),
        row("tupe_r", seconds=seconds(5, 9)),
        row("too large", mib=None),
        row(layer.PROJECTIONS, seconds=seconds(1, 1)),
    ]
    collect._add_ratios(rows)
    tupe_r = rows[1]
    assert (tupe_r["ms"], tupe_r["cpu_ms"]) == (7000, 14000)
    assert tupe_r["ratio"] == pytest.approx((5 / 3 + 9 / 5) / 2)
    assert tupe_r["core_ms"] == 6000
    assert tupe_r["core_ratio"] == tupe_r["core_cpu_ratio"] == 2  # of 4 / 2 and 8 / 4
    assert rows[2]["ms"] is rows[2]["ratio"] is rows[2]["core_ratio"] is None
    assert rows[3]["core_ms"] is None
    assert "seconds" not in tupe_r


def test_a_slope_is_that_of_logarithms_from_2048_tokens_on():
    rows = [
        *(row("a", mib=n / 1024, length=n) for n in (128, 2048, 4096, 16384)),
        *(row("b", mib=n * n / 2**20, length=n) for n in (512, 2048, 16384)),
        row("c", length=2048),
        row("c", mib=None, length=16384),
    ]
    found = {one["label"]: one for one in collect.slopes(rows)}
    assert set(found) == {"a", "b"}, "one length has no slope"
    assert found["a"]["slope"] == pytest.approx(1)
    assert found["b"]["slope"] == pytest.approx(2)
    assert (found["a"]["shortest"], found["a"]["shortest_mib"]) == (2048, 2)
    assert (found["a"]["longest"], found["a"]["longest_mib"]) == (16384, 16)


def test_what_does_not_fit_or_takes_too_long_is_a_row_that_says_so(monkeypatch):
    """No process is begun for what a shorter length has told of; the others go on."""
    asked = []

    def run(module, job, tick):
        labels, length = [case["label"] for case in job["cases"]], job["length"]
        asked.append((labels, length))
        if not job["memory"]:
            return {"times": {label: seconds(1.0) for label in labels}, "versions": {}}
        if labels == ["t5"] and length == 64:
            return {"above_mib": job["limit_mib"], "versions": {}}
        if labels == ["alibi"]:
            raise ChildError("exit code 1: it broke")
        wall = 5.0 if labels == ["shaw:k=8"] else 0.001
        return {"mib": 9.0, "wall": wall, "cpu": wall, "versions": {"keras": "3"}}

    monkeypatch.setattr(collect.process, "run", run)
    monkeypatch.setattr(collect, "available", lambda: 2**40)
    settings = Settings(
        positions=("t5", "shaw:k=8", "alibi"),
        heads=(2,),
        lengths=(4096, 64),
        tokens=64,
        limit_mib=100,
        step_seconds=60.0,
    )
    found = collect.collect(settings)
    reasons = {(one["label"], one["length"]): one["reason"] for one in found["rows"]}
    assert reasons["t5", 64] == "does not fit into 100 MiB"
    assert reasons["shaw:k=8", 64] is None
    assert reasons["shaw:k=8", 4096] == "would take about 20,480 s a step"
    assert reasons["t5", 4096] == "did not fit at a shorter length"
    assert reasons["alibi", 64] == "failed"
    assert reasons["absolute", 4096] is None
    assert found["problems"][0] == "alibi, 2 heads, n = 64: exit code 1: it broke"
    assert (["absolute", "shaw:k=8", layer.PROJECTIONS], 64) in asked, "what fits is timed"
    assert (["t5"], 4096) not in asked
    assert {one["ratio"] for one in found["rows"] if one["label"] == "absolute"} == {1}
    page = markdown(
        {
            "command": "python -m benchmarks.attention",
            "definitions": definitions(settings),
            "source": {"commit": None, "dirty": None},
            "machine": {"cpu": "a CPU", "cores": 2, "gpu": None},
            **found,
        }
    )
    assert "does not fit into 100 MiB" in page
    assert "Failed: alibi, 2 heads, n = 64: exit code 1: it broke." in page


@pytest.mark.slow
def test_a_run_writes_times_and_memory(tmp_path):
    arguments = ["--positions", "tupe_r", "--heads", "2", "--lengths", "16", "--tokens", "32"]
    attention.main([*arguments, "--rounds", "2", "--out", str(tmp_path)])
    record = json.loads((tmp_path / "attention.json").read_text(encoding="utf-8"))
    assert [one["label"] for one in record["rows"]] == ["absolute", "tupe_r", layer.PROJECTIONS]
    for one in record["rows"]:
        assert one["batch_size"] == 2
        assert one["ms"] > 0
        assert one["peak_memory_mib"] > 0
        assert one["reason"] is None
    assert record["problems"] == []
    assert record["environment"]["versions"]["backend"] == "tensorflow"
    assert (tmp_path / "attention.md").read_text(encoding="utf-8") == markdown(record)
