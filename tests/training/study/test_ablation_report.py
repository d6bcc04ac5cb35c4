"""The report of an ablation, on runs that are made up."""

import json
import math

import commands
import numpy as np
import pytest
import scipy.stats
from ablation_cases import MACHINE, finish, report, report_only
from matplotlib.image import imread
from run_cases import cells, make_ended_run

from training.studies.ablation.tasks import Task
from training.studies.ablation.work import found_by

STEPS = 300  # of `make_ended_run`
# Losses above those of `absolute`, by seed.
SHIFTS = {
    "absolute": (0.0, 0.2, 0.1),
    "tupe_r": (-1.0, -0.78, -0.89),
    "none": (0.5, 0.75, 0.61),
    "t5": (0.1, 0.15, 0.1),
}


def make_ablation(out):
    """Four methods, three seeds."""
    for name, shifts in SHIFTS.items():
        for seed, shift in enumerate(shifts):
            make_ended_run(out / name / f"seed-{seed}" / "pretrain", name, seed, shift)
    return finish(out)


@pytest.fixture
def ablation(tmp_path):
    return make_ablation(tmp_path)


@pytest.fixture(scope="module")
def reported(tmp_path_factory):
    """An ablation with its report: folder, record, and what was printed."""
    out = make_ablation(tmp_path_factory.mktemp("ablation"))
    printed = report_only(out)
    return out, json.loads((out / "study.json").read_text()), printed


def refusal(out, *more):
    return commands.refusal("study", "ablation", "--report-only", "--out", out, *more)


def rows_of(text, heading):
    """The table under a heading of the Markdown file: method -> dictionary of cells."""
    header, *rows = cells(text.split(f"## {heading}\n")[1].split("\n## ")[0])
    return {row[0]: dict(zip(header, row, strict=True)) for row in rows}


def last_loss(shift=0.0):
    return 3 + shift + 6 * math.exp(-STEPS / 60)


def test_the_table_is_what_independent_statistics_say(reported):
    out, record, printed = reported
    text = (out / "study.md").read_text()
    assert text in printed
    rows = rows_of(text, "Held-out loss")
    assert list(rows) == ["tupe_r", "absolute", "t5", "none"]  # lowest first
    base = np.add(SHIFTS["absolute"], last_loss())
    for name, shifts in SHIFTS.items():
        losses = np.add(shifts, last_loss())
        summary = record["methods"][name]["scores"]["held-out loss"]
        assert summary["mean"] == pytest.approx(losses.mean(), abs=1e-6)
        assert rows[name]["seeds"] == "3"
        assert rows[name]["held-out loss"].startswith(f"{losses.mean():.4f}")
        assert rows[name]["masked accuracy"].startswith(f"{100 * np.mean(1 / losses):.2f}")
        if name in ("absolute", "t5"):
            continue
        expected = scipy.stats.ttest_rel(losses, base)
        found = summary["difference"]
        assert found["p_value"] == pytest.approx(expected.pvalue, rel=1e-2)  # of written logs
        interval = expected.confidence_interval()
        np.testing.assert_allclose([found["low"], found["high"]], interval, atol=1e-4)
        assert summary["adjusted_p"] >= found["p_value"]
    assert rows["absolute"]["conclusion"] == "-"
    assert rows["tupe_r"]["conclusion"] == "lower"
    assert rows["none"]["conclusion"] == "higher"
    assert rows["t5"]["conclusion"] == "too few seeds to tell"
    assert "Too few to tell" in text
    assert "Differences are the method less `absolute`" in text
    assert "There are 3 comparisons" in text


def test_steps_saved_are_read_from_the_curves(reported):
    out, record, _ = reported
    rows = rows_of((out / "study.md").read_text(), "Steps, size and speed")
    curve_steps = np.arange(20, STEPS + 1, 20)
    curve = 3 + 6 * np.exp(-curve_steps / 60)
    expected = []
    for ours, theirs in zip(SHIFTS["tupe_r"], SHIFTS["absolute"], strict=True):
        fine = np.linspace(20, STEPS, 100_001)
        below = np.interp(fine, curve_steps, curve + ours) <= last_loss(theirs)
        expected.append(fine[below.argmax()] / STEPS)
    share = record["methods"]["tupe_r"]["share_of_steps_to_baseline"]
    np.testing.assert_allclose(list(share["values"].values()), expected, atol=1e-4)
    assert share["mean"] == pytest.approx(np.mean(expected), abs=1e-4)
    assert rows["tupe_r"]["share of the steps to the baseline's final loss"].startswith(
        f"{np.mean(expected):.0%} ("
    )
    assert rows["none"]["share of the steps to the baseline's final loss"] == "-"
    assert rows["none"]["not reached"] == "3 of 3"
    assert rows["t5"]["not reached"] == "1 of 3"
    assert record["methods"]["t5"]["share_of_steps_to_baseline"]["num_not_reached"] == 1
    assert rows["absolute"]["not reached"] == "0 of 3"
    assert rows["tupe_r"]["parameters of the encoder"] == "1,006"
    assert rows["tupe_r"]["tokens/s"] == "1,000"


def test_everything_is_in_the_record(reported):
    out, record, _ = reported
    assert record["command"] == f"python -m training.study ablation --report-only --out {out}"
    assert record["machine"] == MACHINE
    assert record["seeds"] == [0, 1, 2]
    assert record["positions"] == sorted(SHIFTS)
    assert record["settings"]["steps"] == STEPS
    assert record["seconds"] == pytest.approx(12 * STEPS / 2)
    run = record["methods"]["none"]["runs"]["2"]
    assert run["steps"] == list(range(20, STEPS + 1, 20))
    assert run["losses"][-1] == pytest.approx(last_loss(0.61), abs=1e-6)
    assert run["commit"] == "0123abc"
    text = (out / "study.md").read_text()
    assert "a processor, 2 cores, tensorflow" in text
    assert "0123abc" in text


def test_the_picture_shows_every_method_and_grows_with_them(reported, tmp_path):
    few = imread(reported[0] / "study.png")
    for number in range(14):
        options = json.dumps({"max_distance": 9 + number})
        folder = tmp_path / f"t5.max_distance={9 + number}" / "seed-0" / "pretrain"
        make_ended_run(folder, "t5", 0, number / 9, position_options=options)
    record = report(finish(tmp_path), "--baseline", "t5:max_distance=9")
    assert len(record["methods"]) == 14
    many = imread(tmp_path / "study.png")
    assert many.shape[0] > few.shape[0] > 400
    assert many.shape[1] == few.shape[1]
    colors = (many[..., :3] * 255).round().astype(int)
    for color in ([0x1F, 0x77, 0xB4], [0xFF, 0x7F, 0x0E], [0x17, 0xBE, 0xCF]):
        assert (np.abs(colors - color).max(axis=-1) < 8).sum() > 100


def test_one_seed_is_told_to_be_too_few_and_null_in_json(tmp_path):
    for name in ("absolute", "t5"):
        make_ended_run(tmp_path / name / "seed-0" / "pretrain", name, 0)
    record = report(finish(tmp_path, machine=None))
    summary = record["methods"]["t5"]["scores"]["held-out loss"]
    assert summary["low"] is None
    assert summary["difference"]["p_value"] is None
    assert summary["conclusion"] == "too few seeds to tell"
    assert "NaN" not in (tmp_path / "study.json").read_text()
    assert record["machine"] is None
    assert "Machine not recorded" in (tmp_path / "study.md").read_text()


def test_without_a_run_of_the_baseline_there_is_nothing_to_compare_with(tmp_path):
    make_ended_run(tmp_path / "t5" / "seed-0" / "pretrain", "t5", 0)
    record = report(finish(tmp_path))
    assert record["positions"] == ["t5"]
    assert "nothing to compare with" in (tmp_path / "study.md").read_text()


def test_scores_of_tasks_are_compared_too(ablation):
    constant = {"absolute": 50.0, "t5": 48.0}
    for name, shifts in SHIFTS.items():
        for seed, shift in enumerate(shifts):
            run = ablation / name / f"seed-{seed}"
            score = {"score": 60 - 10 * shift}
            columns = {"cola": {"columns": {"cola": score}}, "rte": {"columns": {"rte": score}}}
            scored = {
                "glue": {"tasks": columns, "average": 60 - 10 * shift, "seconds": 7.0},
                "squad": {
                    "exact_match": {"mean": 40 - shift},
                    "f1": {"mean": constant.get(name, 50 - shift)},
                },
                "blimp": {"overall": {"accuracy": 0.7 - shift / 10}, "seconds": 3.0},
            }
            for task, content in scored.items():
                (run / task).mkdir()
                (run / task / "study.json").write_text(json.dumps(content))
    record = report(finish(ablation))
    scores = record["methods"]["tupe_r"]["scores"]
    names = ["GLUE cola", "GLUE rte", "GLUE average", "SQuAD EM", "SQuAD F1", "BLiMP"]
    assert list(scores) == ["held-out loss", "masked accuracy", *names]
    assert scores["GLUE cola"]["mean"] == pytest.approx(60 + 10 * 0.89)
    assert scores["BLiMP"]["difference"]["mean"] == pytest.approx(9.9, abs=0.1)
    assert record["seconds"] == pytest.approx(12 * (STEPS / 2 + 10))
    rows = rows_of((ablation / "study.md").read_text(), "GLUE cola")
    assert list(rows) == ["tupe_r", "absolute", "t5", "none"]  # highest first
    assert rows["tupe_r"]["conclusion"] == "higher"
    rows = rows_of((ablation / "study.md").read_text(), "SQuAD F1")
    assert list(rows["t5"].values())[-3:] == ["-", "-", "no spread to judge by"]
    assert record["methods"]["t5"]["scores"]["SQuAD F1"]["difference"]["p_value"] is None
    picture = imread(ablation / "tasks.png")  # two rows of three panels, four colors
    assert min(picture.shape[:2]) > 400
    pixels = (picture[..., :3] * 255).round().astype(int)
    for color in ([0x1F, 0x77, 0xB4], [0xFF, 0x7F, 0x0E], [0x2C, 0xA0, 0x2C], [0xD6, 0x27, 0x28]):
        assert (np.abs(pixels - color).max(axis=-1) < 8).sum() > 6 * 30


def test_another_baseline_may_be_asked_for(ablation):
    record = report(ablation, "--baseline", "none")
    assert record["methods"]["absolute"]["scores"]["held-out loss"]["conclusion"] == "lower"
    assert record["methods"]["none"]["scores"]["held-out loss"]["difference"] is None


def test_runs_of_two_ablations_are_refused_with_what_differs(ablation):
    folder = ablation / "xlnet" / "seed-0" / "pretrain"
    make_ended_run(folder, "xlnet", 0, learning_rate=0.5, valid_every=7)
    before = (finish(ablation) / "study.json").read_bytes()
    message = refusal(ablation)
    assert "learning_rate: 0.0001 -> 0.5" in message
    assert "valid_every: 1000 -> 7" in message
    assert "xlnet/seed-0/pretrain" in message
    assert (ablation / "study.json").read_bytes() == before


def test_a_run_whose_validations_end_early_has_no_result(ablation):
    path = ablation / "t5" / "seed-0" / "pretrain" / "valid.csv"
    path.write_text("\n".join(path.read_text().split("\n")[:3]) + "\n")
    with pytest.raises(ValueError, match="at its last step, 300"):
        found_by(path.parent, "t5")


def test_a_folder_without_a_finished_run_has_no_report(tmp_path):
    (tmp_path / "study.json").write_text('{"format": 1, "study": "ablation"}')
    assert "There must be a finished run at least for a report" in refusal(tmp_path)
    told = refusal(tmp_path / "nowhere")
    assert "--report-only needs --out" in told
    assert told.endswith("nowhere', where there is none")


def test_a_baseline_that_is_not_there_is_refused(ablation):
    message = refusal(ablation, "--baseline", "tupe_a")
    assert "--baseline must be one of the methods that are there" in message
    assert "the nearest is 'tupe_r'" in message


def test_a_damaged_result_of_a_task_is_named(tmp_path):
    (tmp_path / "study.json").write_text('{"overall": {}}')
    with pytest.raises(ValueError, match="must be those that its command wrote: KeyError"):
        Task("blimp", None).read(tmp_path)
    (tmp_path / "study.json").write_text('{"overall": {"accuracy": 1e9}}')
    with pytest.raises(ValueError, match="BLiMP is 1"):
        Task("blimp", None).read(tmp_path)


def test_models_that_were_tested_on_unequal_rows_are_refused(ablation):
    for seed, pairs in enumerate((7, 7, 6)):
        folder = ablation / "t5" / f"seed-{seed}" / "blimp"
        folder.mkdir()
        content = {"overall": {"accuracy": 0.5, "pairs": pairs}, "length": 9}
        (folder / "study.json").write_text(json.dumps(content))
    message = refusal(finish(ablation))
    assert "must be tested on equal rows" in message
    assert "9 tokens of a row, 7 pairs" in message
    assert "9 tokens of a row, 6 pairs" in message
