"""The benchmark of the batches, run as a user runs it, on few rows."""

import json

import pytest

from benchmarks.data import __main__ as data
from benchmarks.data.cases import measure
from benchmarks.data.random_rows import write_random_rows

FEW = ["--rows", "64", "--batch-size", "16", "--rounds", "2"]


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    """What a run on random rows writes."""
    out = tmp_path_factory.mktemp("benchmark") / "results" / "data.json"
    data.main([*FEW, "--out", str(out)])
    assert [entry.name for entry in out.parent.iterdir()] == ["data.json"]
    return json.loads(out.read_text("utf-8"))


def test_a_record_says_what_was_measured_where_and_by_which_command(record):
    assert record["command"].startswith("python -m benchmarks.data --rows 64 --batch-size 16 ")
    assert set(record["source"]) == {"commit", "dirty"}
    assert record["machine"]["cores"] >= 1
    assert (record["data"], record["rows"], record["length"]) == ("random rows", 128, 512)
    assert (record["batch_size"], record["rounds"]) == (16, 2)


def test_every_case_has_its_speed(record, tensorflow):
    assert [case["label"] for case in record["cases"]] == [
        "read only",
        "tokens, one thread",
        "tokens, tf.data, 2 threads",
        "whole words, one thread",
        "whole words, tf.data, 2 threads",
    ]
    assert record["left_out"] is None
    for case in record["cases"]:
        lower, upper = case["quartiles"]
        assert 0 < lower <= case["rows_per_second"] <= upper


def test_the_table_has_a_line_for_every_case(record):
    page = data.markdown(record)
    for case in record["cases"]:
        assert f"| {case['label']}" in page
    assert record["command"] in page


def test_prepared_rows_are_measured_where_they_are(tmp_path, capsys):
    write_random_rows(tmp_path / "rows", 40)
    out = tmp_path / "data.json"
    data.main([*FEW, "--data", str(tmp_path / "rows"), "--out", str(out)])
    assert json.loads(out.read_text("utf-8"))["rows"] == 40
    assert "40 rows of 512 tokens, in batches of 16." in capsys.readouterr().out


def test_a_directory_that_is_not_prepared_is_refused(tmp_path):
    out = tmp_path / "data.json"
    with pytest.raises(SystemExit, match="^data: Rows are read from a directory that"):
        data.main([*FEW, "--data", str(tmp_path), "--out", str(out)])
    assert not out.exists()


def test_medians_are_over_the_counted_rounds():
    turns = {"one": [], "two": []}
    cases = {
        label: (lambda first, count, taken=taken: taken.append((first, count)), 4)
        for label, taken in turns.items()
    }
    found = measure(cases, rounds=3, rows=8, tick=lambda: None)
    assert turns == {label: [(0, 4), (4, 4), (8, 4), (12, 4)] for label in cases}
    assert [row["label"] for row in found] == ["one", "two"]
    assert len(found[0]["quartiles"]) == 2
