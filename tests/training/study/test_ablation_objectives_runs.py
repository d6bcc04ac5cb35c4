"""A whole comparison of two objectives, killed on its way, and its preset in tasks."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import blimp_cases
import commands
import pretrain_cases
import pytest

pytestmark = pytest.mark.slow
PAIRS = {("agreement", "morphology", "agreement"): [("Ba ne.", "Ne ba."), ("Ka.", "Ke.")]}
NAMES = ("masked_lm", "replaced_token")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("objectives")
    pretrain_cases.make_rows(folder)
    blimp_cases.write_pairs(folder / "blimp", PAIRS)
    return folder


def words(folder, out, **more):
    options = {**pretrain_cases.OPTIONS, "seed": None, "positions": ["absolute"], "seeds": 1}
    options |= more or {"blimp": folder / "blimp", "objectives": NAMES}
    return pretrain_cases.arguments(folder / "rows", out, **options)


def test_a_killed_comparison_goes_on_by_the_same_command(folder, tmp_path):
    out = tmp_path / "out"
    process = subprocess.Popen(
        [sys.executable, "-m", "training.study", "ablation", *words(folder, out)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=pathlib.Path(__file__).parents[3],
    )
    log = out / ".work/replaced_token/absolute/seed-0/pretrain/log.csv"
    try:  # in the middle of the second objective
        while process.poll() is None and not (log.exists() and "\n8," in log.read_text()):
            time.sleep(0.05)
        assert process.poll() is None
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    told = commands.run_anew("study", "ablation", *words(folder, out))
    assert told.code == 0, told.err
    assert "# Objectives compared at equal FLOPs" in told.out
    assert "All runs have the same model FLOPs" in told.out
    assert "2 of 4 runs are there already" in told.err
    record = json.loads((out / "study.json").read_text())
    assert record["objectives"] == list(NAMES)
    assert record["equal_flops"]
    assert record["unfinished"] == []
    assert record["costs"]["masked_lm"]["steps"] == pretrain_cases.OPTIONS["steps"]
    assert list(record["scores"]) == ["BLiMP"]
    assert set(record["scores"]["BLiMP"]["absolute"]) == set(NAMES)


def test_encoder_and_decoder_are_compared_at_equal_cost(folder, tmp_path):
    out, names = tmp_path / "out", ("masked_lm", "seq2seq")
    told = commands.run_anew("study", "ablation", *words(folder, out, objectives=names))
    assert told.code == 0, told.err
    record = json.loads((out / "study.json").read_text())
    assert record["equal_flops"]
    assert record["unfinished"] == []
    assert record["scores"] == {}
    steps = [record["costs"][name]["steps"] for name in names]
    assert steps[0] == pretrain_cases.OPTIONS["steps"] > steps[1]
    text = (out / "study.md").read_text()
    assert "next-token accuracy" in text
