"""What a memory is worth: the numbers of two ablations against SciPy, and what is refused."""

import json

import numpy as np
import pytest
import scipy.stats
from run_cases import picture

from benchmarks import segment_memory

SEEDS = (0, 1, 2)


def write(folder, memory_length, shift, methods=("rope", "xlnet")):
    """Writes what is read of an ablation."""
    rng = np.random.default_rng(memory_length)
    found = {}
    for name in methods:
        runs = {}
        for seed in SEEDS:
            losses = 4 + shift * np.arange(3) + rng.normal(0, 0.01, 3)
            bins = [
                {"first": 8 * n + 1, "last": 8 * n + 8, "tokens": 5, "loss": float(loss)}
                for n, loss in enumerate(losses)
            ]
            loss = float(losses.mean())
            runs[seed] = {"scores": {"held-out loss": loss}, "by_position": {"bins": bins}}
        found[name] = {"runs": runs}
    settings = {"memory_length": memory_length, "steps": 10 + memory_length}
    record = {"methods": found, "seeds": list(SEEDS), "settings": settings, "machine": {"cores": 2}}
    folder.mkdir(exist_ok=True)
    (folder / "study.json").write_text(json.dumps(record))
    return json.loads((folder / "study.json").read_text())


def test_the_numbers_are_those_of_paired_tests(tmp_path, capsys):
    records = [write(tmp_path / "with", 8, -0.05), write(tmp_path / "without", 0, 0.0)]
    out, drawn = tmp_path / "found.json", tmp_path / "found.png"
    folders = [str(tmp_path / name) for name in ("with", "without")]
    segment_memory.main([*folders, "--out", str(out), "--picture", str(drawn)])
    record = json.loads(out.read_text())
    assert record["steps"] == {"memory": 18, "none": 10}
    for row in record["rows"]:
        runs = [one["methods"][row["method"]]["runs"].values() for one in records]
        for number, segment in enumerate(row["segments"]):
            pair = [[run["by_position"]["bins"][number]["loss"] for run in part] for part in runs]
            expected = scipy.stats.ttest_rel(*pair)
            assert segment["memory"] == pytest.approx(np.mean(pair[0]))
            assert segment["difference"]["mean"] == pytest.approx(
                np.mean(pair[0]) - np.mean(pair[1])
            )
            assert segment["difference"]["p_value"] == pytest.approx(expected.pvalue)
            assert (segment["first"], segment["last"]) == (8 * number + 1, 8 * number + 8)
        assert row["difference"]["mean"] == pytest.approx(row["memory"] - row["none"])
    picture(drawn)


def test_what_does_not_fit_is_one_sentence(tmp_path, capsys):
    write(tmp_path / "with", 8, 0.0)
    write(tmp_path / "other", 0, 0.0, methods=("rope",))
    for words, part in (
        ([str(tmp_path / "with")], "ABLATIONS must be two folders"),
        ([str(tmp_path / name) for name in ("with", "other")], "the same methods and seeds"),
        ([str(tmp_path / "with")] * 2, "the second none"),
    ):
        with pytest.raises(SystemExit) as stop:
            segment_memory.main(words)
        assert part in f"{stop.value.code} {capsys.readouterr().err}"
