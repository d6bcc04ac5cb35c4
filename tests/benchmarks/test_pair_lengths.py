"""The benchmark of longer targets: its pairs, its scores by length, a small run of it."""

import json

import pytest

from benchmarks.pair_lengths import __main__ as pair_lengths
from benchmarks.pair_lengths import pairs
from benchmarks.pair_lengths.collect import by_length


def test_copies_are_of_distinct_words_and_longer_in_the_test():
    task = pairs.copy()
    for part, lengths in (
        ("train", range(1, 13)),
        ("valid", range(1, 13)),
        ("test", range(13, 25)),
    ):
        rows = getattr(task, part)
        assert {len(target.split()) for _, target in rows} == set(lengths)
        for source, target in rows:
            assert source == target
            assert len(set(source.split())) == len(source.split())
    assert pairs.copy() == task


def test_pairs_of_scan(tmp_path):
    line = "IN: walk and turn left OUT: I_WALK I_TURN_LEFT\n"
    (tmp_path / "length-train.txt").write_text(line * 201)
    (tmp_path / "length-test.txt").write_text("IN: jump OUT: I_JUMP\n")
    task = pairs.scan(tmp_path)
    assert task.train == [("walk and turn left", "WALK LEFT")]
    assert (len(task.valid), task.test) == (200, [("jump", "JUMP")])
    (tmp_path / "length-test.txt").write_text("IN: jump OUT: I_JUMP\njump\n")
    with pytest.raises(ValueError, match=r"must be `IN: .*length-test.txt:2: 'jump'"):
        pairs.scan(tmp_path)
    with pytest.raises(ValueError, match="file must be readable"):
        pairs.scan(tmp_path / "nothing")


def test_scores_by_length():
    lines = [["-", "a b", "a b"]] * 3 + [["-", "a b", "a c"]] + [["-", "a b c d", "a b c d e"]] * 4
    short, long = by_length(lines)
    assert (short["shortest"], short["longest"], short["pairs"]) == (2, 2, 4)
    assert (short["exact_match"], short["beginning"]) == (75, 87.5)
    assert (long["words"], long["exact_match"], long["beginning"]) == (4, 0, 100)


@pytest.mark.slow
def test_a_small_run(tmp_path):
    words = ["--positions", "none,sinusoidal", "--seeds", "2", "--steps", "3"]
    words += ["--runs", str(tmp_path / "runs"), "--out", str(tmp_path / "out")]
    pair_lengths.main(words)
    record = json.loads((tmp_path / "out" / "copy.json").read_text())
    assert list(record["methods"]) == ["none", "sinusoidal"]
    for method in record["methods"].values():
        assert sum(group["pairs"] for group in method["test"]["by_length"]) == 400
        assert len(method["valid"]["exact_match"]) == 2
    assert (tmp_path / "out" / "copy.png").stat().st_size > 10_000
    assert "| sinusoidal |" in (tmp_path / "out" / "copy.md").read_text()
