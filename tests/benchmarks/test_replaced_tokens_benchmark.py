"""The benchmark of discriminators: its scores against counting, and a run of it."""

import json
import math

import numpy as np
import pretrain_cases
import pytest

from benchmarks import replaced_tokens
from training.command.log import VALID, read_log


def test_scores_are_those_of_counting():
    rng = np.random.default_rng(0)
    logits, replaced = rng.integers(-3, 4, 60) / 2, rng.random(60) < 0.3
    found = replaced_tokens.scores(logits, replaced)
    pairs = [(a > b) + (a == b) / 2 for a in logits[replaced] for b in logits[~replaced]]
    assert found["area"] == pytest.approx(np.mean(pairs), abs=1e-12)
    assert found["constant"] == pytest.approx(100 - 100 * replaced.mean())
    right = sum((logit > 0) == other for logit, other in zip(logits, replaced, strict=True))
    assert found["accuracy"] == pytest.approx(100 * right / 60)
    called, hits = (logits > 0).sum(), ((logits > 0) & replaced).sum()
    assert (found["called"], found["right"]) == (called, hits)
    chances = [math.comb(called, number) for number in range(hits, called + 1)]
    assert found["p_value"] == pytest.approx(sum(chances) / 2.0**called, rel=1e-9)
    none = replaced_tokens.scores(-np.abs(logits) - 1, replaced)
    assert (none["called"], none["right"], none["p_value"]) == (0, 0, 1.0)
    assert replaced_tokens.scores(logits, replaced & False)["area"] is None


@pytest.mark.slow
def test_the_accuracy_is_that_of_the_runs_own_validation(tmp_path, capsys):
    rows = pretrain_cases.make_rows(tmp_path / "text")
    run = tmp_path / "run"
    pretrain_cases.run(rows, run, objective="replaced_token", steps=4)
    capsys.readouterr()
    out = tmp_path / "found.json"
    words = [str(run), "--data", str(rows), "--batches", "2", "--out", str(out)]
    replaced_tokens.main(words)
    (row,) = json.loads(out.read_text())["rows"]
    last = read_log(run / VALID)["replaced_token_accuracy"][-1]
    assert row["accuracy"] == pytest.approx(100 * last, abs=1e-4)
