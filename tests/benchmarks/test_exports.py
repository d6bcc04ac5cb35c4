import json

import numpy as np
import pytest

from benchmarks import exports
from benchmarks._export_rounds import median_interval


def test_the_interval_of_a_median_covers_it_19_times_out_of_20():
    generator = np.random.default_rng(3)
    draws = generator.exponential(size=(2000, 60))
    inside = [low <= np.log(2) <= high for low, high in (median_interval(sorted(d)) for d in draws)]
    assert 0.945 <= np.mean(inside) <= 0.985
    assert median_interval([1.0, 2.0, 9.0]) == [1.0, 9.0], "too few values to say more"


def test_mistakes_are_named_at_once(capsys):
    arguments = ["--size", "huge", "--rounds", "1", "--lengths", "0", "--positions", "tupe_q"]
    with pytest.raises(SystemExit) as stop:
        exports.main(arguments)
    assert stop.value.code == 2
    printed = capsys.readouterr().err
    for part in ("--size must", "--rounds must", "--lengths must", "--positions must"):
        assert part in printed


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
