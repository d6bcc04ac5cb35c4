"""The benchmark of exported encoders, run as a user runs it, on tiny ones."""

import json

import pytest

from benchmarks.exports import __main__ as exports


@pytest.mark.slow
def test_a_small_run_writes_a_table_and_its_numbers(tmp_path, capsys):
    arguments = ["--lengths", "16", "--batches", "1,2", "--rounds", "10", "--size", "tiny"]
    exports.main([*arguments, "--out", str(tmp_path)])
    record = json.loads((tmp_path / "exports.json").read_text())
    assert [(row["batch"], row["encoder"]) for row in record["rows"]] == [
        (batch, name) for batch in (1, 2) for name in ("absolute", "tupe_r", "KerasHub's BERT")
    ]
    for row in record["rows"]:
        low, high = row["ratios"]["absolute"]["interval"]
        assert low <= row["ratios"]["absolute"]["median"] <= high
    assert "| tupe_r" in (tmp_path / "exports.md").read_text()
