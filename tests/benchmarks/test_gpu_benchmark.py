"""The benchmark of an accelerator: shares, refusals, and a run on a CPU where there is JAX."""

import importlib.util
import json
import os
import subprocess
import sys

import pytest

from benchmarks.gpu import __main__ as gpu
from benchmarks.gpu.collect import add_shares
from benchmarks.gpu.settings import Settings
from benchmarks.harness.process import ROOT

TINY = ["--sizes", "tiny", "--lengths", "16", "--tokens", "64", "--vocabulary-size", "100"]
needs_jax = pytest.mark.skipif(
    importlib.util.find_spec("jax") is None,
    reason="needs JAX, in an environment of tests/requirements-jax.txt",
)


def test_utilisation_is_of_the_peak_in_bfloat16_and_of_no_other():
    settings = Settings(sizes=("tiny",), lengths=(16,), tokens=64, vocabulary_size=100)
    facts = {"size": "tiny", "length": 16, "batch_size": 4}
    rows = [
        {**facts, "precision": "bfloat16", "position": "absolute", "ms": 2.0},
        {**facts, "precision": "bfloat16", "position": "tupe_r", "ms": 3.0},
        {**facts, "precision": "float32", "position": "tupe_r", "ms": 4.0},
    ]
    found = {"rows": rows, "peak_flops": 1e12, "product_flops": {"bfloat16": 5e11, "float32": None}}
    for row in rows:
        add_shares(row, settings, found)
    assert rows[0]["utilisation"] == pytest.approx(rows[0]["tflops"])
    assert rows[0]["product_share"] == pytest.approx(2 * rows[0]["utilisation"])
    assert rows[1]["ratio"] == 1.5
    assert (rows[2]["utilisation"], rows[2]["product_share"]) == (None, None)
    assert rows[2]["ratio"] is None, "the first method has no row in float32"


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
        cwd=ROOT,
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
