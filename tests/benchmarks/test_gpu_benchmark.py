"""The benchmark of an accelerator: shares, what is skipped, and a small run of what is here."""

import json
import subprocess
import sys

import pytest

from benchmarks.gpu import collect
from benchmarks.gpu.collect import add_shares
from benchmarks.gpu.settings import SYSTEMS, Settings
from benchmarks.harness.process import ROOT


def test_utilisation_is_of_the_peak_in_bfloat16_and_of_no_other():
    settings = Settings(sizes=("tiny",), lengths=(16,), tokens=64, vocabulary_size=100)
    facts = {"system": "jax", "size": "tiny", "length": 16, "batch_size": 4}
    rows = [
        {**facts, "precision": "bfloat16", "position": "absolute", "ms": 2.0},
        {**facts, "precision": "bfloat16", "position": "tupe_r", "ms": 3.0},
        {**facts, "precision": "float32", "position": "tupe_r", "ms": 4.0},
    ]
    rows.append({**rows[0], "system": "transformers", "ms": 5.0})
    found = {"rows": rows, "peak_flops": 1e12, "product_flops": {"bfloat16": 5e11, "float32": None}}
    found["systems"] = ["jax", "transformers"]
    for row in rows:
        add_shares(row, settings, found)
    assert rows[0]["utilisation"] == pytest.approx(rows[0]["tflops"])
    assert rows[0]["product_share"] == pytest.approx(2 * rows[0]["utilisation"])
    assert rows[1]["ratio"] == 1.5
    assert (rows[2]["utilisation"], rows[2]["product_share"]) == (None, None)
    assert rows[2]["ratio"] is None, "the first method has no row in float32"
    assert rows[3]["ratio"] == 2.5


def test_what_is_not_installed_is_skipped_with_a_sentence(monkeypatch):
    monkeypatch.setattr(collect.importlib.util, "find_spec", lambda name: None)
    sentences = [collect.missing(system) for system in SYSTEMS]
    assert sentences[0] == "Skipped: jax, since jax cannot be imported."
    assert "transformers, since torch and transformers cannot be imported" in sentences[2]


@pytest.mark.slow
def test_every_system_that_is_here_runs_on_a_cpu(tmp_path):
    words = ["-m", "benchmarks.gpu", "--small", "--positions", "absolute,tupe_r", "--out", tmp_path]
    subprocess.run([sys.executable, *words], check=True, capture_output=True, cwd=ROOT)
    record = json.loads((tmp_path / "gpu.json").read_text(encoding="utf-8"))
    here = [system for system in SYSTEMS if not collect.missing(system)]
    assert record["problems"] == []
    assert len(record["skipped"]) == len(SYSTEMS) - len(here)
    assert {row["system"] for row in record["rows"]} == {*here}
    for row in record["rows"]:
        assert row["ms"] > 0
        assert 3 < row["last_loss"] < 6
        assert row["product_share"] > 0
    page = (tmp_path / "gpu.md").read_text(encoding="utf-8")
    assert page.count("| tiny |") == len(record["rows"])
    assert all(sentence in page for sentence in record["skipped"])
