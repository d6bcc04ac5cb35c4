"""Scores over the steps of pre-training: what is read, compared, drawn, and a real ablation."""

import json
import shutil

import blimp_cases
import numpy as np
import pretrain_cases as cases
import pytest
import scipy.stats
from ablation_cases import finish, report
from commands import done, refusal
from run_cases import cells, make_ended_run, picture

from training.presets.folder import preset_at
from training.study.results import shares_to_baseline

# Scores of one seed above those of another; the steps are those of presets, and the last one.
SHIFTS = {"absolute": (0.0, 1.0, 0.4), "tupe_r": (3.1, 3.9, 3.6), "none": (-9.0, -8.0, -8.4)}
STEPS, LAST = (60, 180), 300


def score(name, seed, step):
    return 40 + 30 * step / LAST + SHIFTS[name][seed]


@pytest.fixture
def out(tmp_path):
    for name, shifts in SHIFTS.items():
        for seed in range(len(shifts)):
            run = tmp_path / name / f"seed-{seed}"
            make_ended_run(run / "pretrain", name, seed)
            for step in (*STEPS, None):
                folder = (run if step is None else run / f"step-{step}") / "blimp"
                folder.mkdir(parents=True)
                share = score(name, seed, step or LAST) / 100
                content = {"overall": {"accuracy": share}, "seconds": 3.0}
                (folder / "study.json").write_text(json.dumps(content))
    return finish(tmp_path)


def test_scores_at_steps_are_compared_at_each(out):
    record = report(out)
    found = record["over_steps"]["BLiMP"]
    assert list(found["steps"]) == ["60", "180", "300"]
    for step, methods in found["steps"].items():
        base = [score("absolute", seed, int(step)) for seed in range(3)]
        for name, summary in methods.items():
            values = [score(name, seed, int(step)) for seed in range(3)]
            np.testing.assert_allclose(summary["mean"], np.mean(values))
            if name != "absolute":
                expected = scipy.stats.ttest_rel(values, base)
                np.testing.assert_allclose(summary["difference"]["p_value"], expected.pvalue)
    assert record["seconds"] == pytest.approx(9 * (LAST / 2 + 3 * 3))  # tests on the way too


def test_shares_of_the_steps_are_read_on_lines(out):
    shares = report(out)["over_steps"]["BLiMP"]["share_of_steps_to_baseline"]
    last = [score("absolute", seed, LAST) for seed in range(3)]
    expected = []
    for seed in range(3):
        fine = np.linspace(60, LAST, 100_001)
        ours = np.interp(fine, [*STEPS, LAST], [score("tupe_r", seed, s) for s in (*STEPS, LAST)])
        expected.append(fine[(ours >= last[seed] - 1e-12).argmax()] / LAST)
    np.testing.assert_allclose(list(shares["tupe_r"]["values"].values()), expected, atol=1e-5)
    interval = scipy.stats.ttest_1samp(expected, 0).confidence_interval()
    np.testing.assert_allclose([shares["tupe_r"][x] for x in ("low", "high")], interval, atol=1e-5)
    assert shares["absolute"]["mean"] == 1.0
    assert shares["none"]["num_not_reached"] == 3


def test_the_report_has_a_table_and_a_picture_of_them(out):
    report(out)
    text = (out / "study.md").read_text()
    part = text.split("## Scores over the steps of pre-training\n")[1].split("\n## ")[0]
    header, *rows = cells(part)
    assert header == ["method", "60 steps", "180 steps", "300 steps", "share of the steps"]
    rows = {row[0]: row[1:] for row in rows}
    assert rows["tupe_r"][0].startswith(f"{46 + np.mean(SHIFTS['tupe_r']):.2f} +- ")
    assert "(+3.07, p 0.00" in rows["tupe_r"][0]
    assert rows["none"][-1] == "not reached by 3 of 3"
    image = picture(out / "steps.png")
    for color in ([0x1F, 0x77, 0xB4], [0xFF, 0x7F, 0x0E], [0x2C, 0xA0, 0x2C]):
        assert (np.abs(image - color).max(axis=-1) < 8).sum() > 200


def test_without_presets_on_the_way_there_is_none_of_it(out):
    for path in out.glob("*/*/step-*"):
        shutil.rmtree(path)
    assert report(out)["over_steps"] == {}
    assert "over the steps of pre-training" not in (out / "study.md").read_text()
    assert not (out / "steps.png").exists()


def test_seeds_and_methods_that_the_baseline_lacks_have_no_share():
    curves = {
        "absolute": {0: ([1, 2], [3.0, 2.0])},
        "t5": {0: ([1, 2], [2.5, 1.5]), 1: ([1, 2], [1.0, 1.0])},
        "none": {1: ([1, 2], [1.0, 1.0])},
    }
    found = shares_to_baseline(curves, "absolute", 2)
    assert {name: one.values for name, one in found.items()} == {
        "absolute": {0: 1.0},
        "t5": {0: 0.75},
    }
    assert shares_to_baseline(curves, "alibi", 2) == {}


def test_an_interval_of_shares_has_no_impossible_ones():
    loss = {"absolute": [3.0, 1.0], "t5": [0.9, 0.5]}
    curves = {
        name: {0: ([1, 10], values), 1: ([1, 10], [3.0, values[1]])}
        for name, values in loss.items()
    }
    found = shares_to_baseline(curves, "absolute", 10)
    assert found["t5"].values == {0: 0.1, 1: pytest.approx(0.82)}
    assert (found["t5"].low, found["t5"].high) == (0.0, 1.0)
    assert (found["absolute"].low, found["absolute"].high) == (1.0, 1.0)


@pytest.mark.slow
def test_an_ablation_tests_the_presets_on_the_way(tmp_path):
    rows, out = cases.make_rows(tmp_path / "rows"), tmp_path / "out"
    pairs = blimp_cases.write_pairs(tmp_path / "blimp")
    options = {**cases.OPTIONS, "seed": None, "positions": ["absolute", "tupe_a"], "seeds": 1}
    options |= {"blimp": pairs, "preset_steps": "8", "valid_every": 24}
    words = cases.arguments(rows, out, **options)
    done("study", "ablation", *words)
    run = out / "tupe_a" / "seed-0"
    paths = (run / "step-8/blimp/study.json", run / "blimp/study.json")
    presets = [json.loads(path.read_text())["command"].split()[3] for path in paths]
    assert presets == [str(preset_at(run / "pretrain", step)) for step in (8, None)]
    assert preset_at(run / "pretrain", 8).is_dir()
    record = json.loads((out / "study.json").read_text())
    assert list(record["over_steps"]["BLiMP"]["steps"]) == ["8", "24"]
    times = {path: path.stat().st_mtime_ns for path in out.glob("*/**/study.json")}
    done("study", "ablation", *words)
    assert times == {path: path.stat().st_mtime_ns for path in out.glob("*/**/study.json")}
    words = cases.arguments(rows, out, **{**options, "preset_steps": "8,12"})
    message = refusal("study", "ablation", *words)
    assert "--preset-steps must be those that the finished runs were trained with" in message
